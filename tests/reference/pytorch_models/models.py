"""The models: six architectures as their users build them, and one with difficult names, at sizes of a few kilobytes, with seeded random weights."""

import torch
import transformers
from torch import nn

VOCABULARY, HIDDEN, LAYERS, HEADS, SEQUENCE, BATCH = 48, 16, 2, 2, 8, 4


class LstmClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.lstm = nn.LSTM(HIDDEN, 12, num_layers=LAYERS, batch_first=True, bidirectional=True)
        self.classifier = nn.Linear(24, 5)

    def forward(self, input_ids):
        states, _ = self.lstm(self.embedding(input_ids))
        return self.classifier(states[:, -1])


class Block(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.layer = nn.ModuleList([nn.Linear(4, 4, bias=bias)])
        self.fc = nn.Linear(4, 4, bias=bias)

    def forward(self, x):
        return self.fc(self.layer[0](x))


class Nested(nn.Module):
    """What makes names hard: lists in lists, a list of its module's own name, parameters without a module, a buffer, GRU, RNN."""

    def __init__(self):
        super().__init__()
        self.seq = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4, bias=False)), nn.Tanh(), nn.Linear(4, 4, bias=False))
        self.blocks = nn.ModuleList([nn.ModuleList([Block(True), Block(False)])])
        self.layer = Block(True)
        self.named = nn.ModuleDict({"a": nn.Linear(4, 4)})
        self.scale = nn.Parameter(torch.randn(4))
        self.register_buffer("table", torch.randn(3, 4))
        self.gru = nn.GRU(4, 6, num_layers=2, bidirectional=True, bias=False)
        self.rnn = nn.RNN(12, 4)
        self.classifier = nn.Linear(4, 3)

    def forward(self, x):
        x = self.seq(x)
        for blocks in self.blocks:
            for block in blocks:
                x = block(x)
        x = self.named["a"](self.layer(x)) * self.scale + self.table
        return self.classifier(self.rnn(self.gru(x.transpose(0, 1))[0])[0]).transpose(0, 1)


class Gpt2(transformers.GPT2LMHeadModel):
    """Called with token ids and a mask only: the TorchScript exporter makes an input of every other argument's default."""

    def forward(self, input_ids, attention_mask):
        return super().forward(input_ids=input_ids, attention_mask=attention_mask).logits


class Llama(transformers.LlamaForCausalLM):
    def forward(self, input_ids, attention_mask):
        return super().forward(input_ids=input_ids, attention_mask=attention_mask).logits


def gpt2():
    return Gpt2(transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=SEQUENCE, n_embd=HIDDEN, n_layer=LAYERS, n_head=HEADS, use_cache=False,
        bos_token_id=0, eos_token_id=0))


def llama():
    return Llama(transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=HIDDEN, intermediate_size=24, num_hidden_layers=LAYERS, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=32, use_cache=False, bos_token_id=0, eos_token_id=0))


def bert():
    return transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=VOCABULARY, hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=24,
        max_position_embeddings=SEQUENCE, num_labels=3))


def vit():
    return transformers.ViTForImageClassification(transformers.ViTConfig(
        hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=24, image_size=16,
        patch_size=4, num_labels=5))


def resnet():
    return transformers.ResNetForImageClassification(transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=5))


ARCHITECTURES = {"gpt2": gpt2, "llama": llama, "bert": bert, "vit": vit, "resnet": resnet, "lstm": LstmClassifier,
                 "nested": Nested}


def build(name, fresh=False):
    """The model in eval mode. Unless it is to be as its constructor leaves it, every parameter and running statistic is
    moved away from its initial value, as training does: zeros and ones are what exporters merge or drop."""
    torch.manual_seed(1)
    model = ARCHITECTURES[name]()
    if not fresh:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1)
            for key, buffer in model.named_buffers():
                if "running" in key:
                    buffer.copy_(torch.rand_like(buffer) + 0.5)
    return model.eval()


def inputs(name):
    """What the model is called with, by name."""
    generator = torch.Generator().manual_seed(2)
    tokens = torch.randint(0, VOCABULARY, (BATCH, SEQUENCE), generator=generator)
    if name in ("vit", "resnet"):
        return {"pixel_values": torch.randn(BATCH, 3, 16, 16, generator=generator)}
    if name == "nested":
        return {"x": torch.randn(BATCH, 3, 4, generator=generator)}
    if name == "lstm":
        return {"input_ids": tokens}
    mask = torch.ones_like(tokens)
    if name == "bert":  # padded samples
        for row in range(BATCH):
            mask[row, SEQUENCE - row:] = 0
        return {"input_ids": tokens, "attention_mask": mask, "token_type_ids": torch.arange(BATCH * SEQUENCE).reshape(BATCH, -1) % 2}
    return {"input_ids": tokens, "attention_mask": mask}


def logits(model, arguments):
    with torch.no_grad():
        result = model(**arguments)
    return result if isinstance(result, torch.Tensor) else result.logits


def labels(name, scores):
    """Classes to learn: every score but the last axis of an architecture's output has one."""
    generator = torch.Generator().manual_seed(3)
    return torch.randint(0, scores.shape[-1], scores.shape[:-1], generator=generator)
