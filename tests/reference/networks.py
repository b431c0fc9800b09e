"""The networks of make-model in PyTorch, under the same parameter names. Bert and Llama are Hugging Face's own."""

import onnx
import torch
import transformers
from torch import nn
from torch.nn import functional


class Mlp(nn.Module):
    """make-model mlp --layers=4 --inputs=16 --hidden=32 --classes=10"""

    def __init__(self):
        super().__init__()
        sizes = [16, 32, 32, 32, 10]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = functional.relu(layer(x))
        return self.layers[-1](x)


class Cnn(nn.Module):
    """make-model cnn --layers=4 --image=1x8x8 --hidden=8 --classes=10"""

    def __init__(self):
        super().__init__()
        convolution = lambda inputs, outputs: nn.Conv2d(inputs, outputs, 3, padding=1)
        self.features = nn.Sequential(convolution(1, 8), nn.ReLU(), convolution(8, 8), nn.ReLU(), nn.MaxPool2d(2),
                                      convolution(8, 16), nn.ReLU(), convolution(16, 16), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Linear(64, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.downsample = nn.Identity() if stride == 1 and inputs == outputs else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        return functional.relu(y + self.downsample(x))


class Resnet(nn.Module):
    """make-model resnet --layers=2 --image=1x48x48 --hidden=4 --classes=10: ResNet-18, narrow."""

    def __init__(self, channels=1, hidden=4):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, hidden, 7, 2, 3, bias=False), nn.BatchNorm2d(hidden)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        channels = hidden
        for part in range(1, 5):
            outputs, blocks = hidden * 2 ** (part - 1), []
            for block in range(2):
                blocks.append(BasicBlock(channels, outputs, 2 if part > 1 and block == 0 else 1))
                channels = outputs
            setattr(self, f"layer{part}", nn.Sequential(*blocks))
        self.fc = nn.Linear(channels, 10)

    def forward(self, x):
        x = self.maxpool(functional.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(functional.adaptive_avg_pool2d(x, 1).flatten(1))


class DoubleConvolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConvolution(inputs, 2 * inputs))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.up, self.conv = nn.ConvTranspose2d(inputs, inputs // 2, 2, 2), DoubleConvolution(inputs, inputs // 2)

    def forward(self, x, skip):
        return self.conv(torch.cat([skip, self.up(x)], dim=1))


class Unet(nn.Module):
    """make-model unet --layers=2 --image=1x16x16 --hidden=4 --classes=3"""

    def __init__(self):
        super().__init__()
        self.inc, self.down1, self.down2 = DoubleConvolution(1, 4), Down(4), Down(8)
        self.up1, self.up2 = Up(16), Up(8)
        self.outc = nn.ModuleDict({"conv": nn.Conv2d(4, 3, 1)})

    def forward(self, x):
        full = self.inc(x)
        half = self.down1(full)
        x = self.up2(self.up1(self.down2(half), half), full)
        return self.outc.conv(x).permute(0, 2, 3, 1)  # class-last


class Lstm(nn.Module):
    """make-model lstm --layers=2 --hidden=24 --sequence=16 --vocabulary=64"""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Embedding(64, 24), nn.Linear(24, 64)
        self.rnn = nn.LSTM(24, 24, num_layers=2, batch_first=True)

    def forward(self, input_ids):
        return self.decoder(self.rnn(self.encoder(input_ids))[0])


class Attention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.c_attn(x).split(c, dim=2))
        return self.c_proj(functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.ln_1, self.ln_2, self.attn = nn.LayerNorm(hidden), nn.LayerNorm(hidden), Attention(hidden, heads)
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(hidden, 4 * hidden), "c_proj": nn.Linear(4 * hidden, hidden)})

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp.c_proj(functional.gelu(self.mlp.c_fc(self.ln_2(x))))


class Gpt(nn.Module):
    """make-model gpt --layers=2 --hidden=32 --heads=4 --sequence=16 --vocabulary=64; the head is the embedding."""

    def __init__(self, layers=2, hidden=32, heads=4, sequence=16, vocabulary=64):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(vocabulary, hidden), "wpe": nn.Embedding(sequence, hidden),
            "h": nn.ModuleList(Block(hidden, heads) for _ in range(layers)), "ln_f": nn.LayerNorm(hidden)})

    def forward(self, input_ids):
        x = self.transformer.wte(input_ids) + self.transformer.wpe.weight
        for block in self.transformer.h:
            x = block(x)
        return self.transformer.ln_f(x) @ self.transformer.wte.weight.T


class Bert(transformers.BertForMaskedLM):
    """make-model bert --layers=2 --hidden=24 --heads=4 --sequence=16 --vocabulary=64"""

    def __init__(self):
        super().__init__(transformers.BertConfig(
            vocab_size=64, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
            max_position_embeddings=16, hidden_dropout_prob=0, attention_probs_dropout_prob=0, pad_token_id=None))

    def forward(self, input_ids, token_type_ids):
        return super().forward(input_ids=input_ids, token_type_ids=token_type_ids).logits


class Llama(transformers.LlamaForCausalLM):
    """make-model llama --layers=2 --hidden=32 --heads=8 --sequence=16 --vocabulary=64"""

    def __init__(self):
        super().__init__(transformers.LlamaConfig(
            vocab_size=64, hidden_size=32, intermediate_size=96, num_hidden_layers=2, num_attention_heads=8,
            num_key_value_heads=2, max_position_embeddings=16, use_cache=False, bos_token_id=0, eos_token_id=0))

    def forward(self, input_ids):
        return super().forward(input_ids=input_ids).logits


NETWORKS = {"mlp": Mlp, "cnn": Cnn, "resnet": Resnet, "unet": Unet, "lstm": Lstm, "gpt": Gpt, "bert": Bert, "llama": Llama}


def load_initial_values(model, path):
    """Those of make-model's file; returns their names. A tied parameter has one name there, two here."""
    values = {t.name: torch.from_numpy(onnx.numpy_helper.to_array(t).copy()) for t in onnx.load(path).graph.initializer}
    missing, unexpected = model.load_state_dict(values, strict=False)
    tied = set(model.state_dict()) - {key for key, _ in model.named_parameters()} - {key for key, _ in model.named_buffers()}
    assert not unexpected and all(key in tied or key.endswith("num_batches_tracked") for key in missing), (missing, unexpected)
    return set(values)
