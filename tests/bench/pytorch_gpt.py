"""What bench-cuda compares with: the same language model in PyTorch, its step compiled, on the GPU. Needs torch with CUDA.

    python3 pytorch_gpt.py BATCH MICROBATCHES TOKENS STEPS PRECISION

Prints a line when it is compiled, and for every line it reads the tokens a second of STEPS steps. The model is gpt-124m (12 layers,
hidden 768, 12 heads, vocabulary 50257); AdamW in its fused form; gradients are accumulated over the microbatches.
"""

import sys
import time

import torch
from torch import nn
from torch.nn import functional

LAYERS, HIDDEN, HEADS, VOCABULARY = 12, 768, 12, 50257


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.qkv, self.out = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x):
        batch, tokens, _ = x.shape
        q, k, v = (each.view(batch, tokens, HEADS, -1).transpose(1, 2) for each in self.qkv(self.before(x)).split(HIDDEN, 2))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(x.shape))
        return x + self.down(functional.gelu(self.up(self.between(x))))


class Gpt(nn.Module):
    def __init__(self, tokens):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, HIDDEN), nn.Embedding(tokens, HIDDEN)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(HIDDEN), nn.Linear(HIDDEN, VOCABULARY, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids):
        x = self.words(ids) + self.places.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def main():
    batch, microbatches, tokens, steps = map(int, sys.argv[1:5])
    kind = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[sys.argv[5]]
    model = Gpt(tokens).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    @torch.compile
    def loss_of(ids, labels):
        with torch.autocast("cuda", kind, enabled=kind != torch.float32):
            logits = model(ids)
        return functional.cross_entropy(logits.float().view(-1, VOCABULARY), labels.view(-1)) / microbatches

    ids = torch.randint(VOCABULARY, (microbatches, batch // microbatches, tokens + 1), device="cuda")

    def train(count):
        for _ in range(count):
            for part in ids:
                loss_of(part[:, :-1].contiguous(), part[:, 1:].contiguous()).backward()
            optimizer.step()
            optimizer.zero_grad()
        torch.cuda.synchronize()

    train(3)
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}, compiled", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        train(steps)
        print(batch * tokens * steps / (time.perf_counter() - start), flush=True)


main()
