"""PyTorch's numbers for the optimizers, settings and learning rates that optimizers_test.py trains with, in float64.

    make_optimizers.py OUT     writes OUT/optimizers.json: values, data, and for each case losses, rates, last parameters

Needs torch. The json beside this file is its output.
"""

import json
import pathlib
import sys

import torch
from torch import optim
from torch.optim import lr_scheduler

BATCH, STEPS, INPUTS, HIDDEN, OUTPUTS = 8, 12, 5, 6, 3


def rounded(tensor):
    """What a text model and float32 hold exactly."""
    return (tensor * 1024).round() / 1024


def make_data():
    torch.manual_seed(9)
    draw = lambda *shape: rounded(torch.randn(*shape, dtype=torch.float64))
    values = {"body.weight": draw(INPUTS, HIDDEN), "body.bias": draw(HIDDEN), "head.weight": draw(HIDDEN, OUTPUTS)}
    return values, {"x": draw(BATCH * STEPS, INPUTS), "labels": draw(BATCH * STEPS, OUTPUTS)}


OPTIMIZERS = {"sgd": optim.SGD, "momentum": lambda p, **o: optim.SGD(p, **{"momentum": 0.9, **o}),
              "nesterov": lambda p, **o: optim.SGD(p, **{"momentum": 0.9, "nesterov": True, **o}), "adam": optim.Adam,
              "adamw": optim.AdamW, "adagrad": optim.Adagrad}
# name -> optimizer, its settings, those of parameters by name, clipping, schedule. What is not said is the default of both.
CASES = {
    **{f"{name}_defaults": {"optimizer": name} for name in OPTIMIZERS},
    **{f"{name}_decay": {"optimizer": name, "lr": 0.05, "weight_decay": 0.1} for name in OPTIMIZERS},
    "momentum_half": {"optimizer": "momentum", "lr": 0.05, "momentum": 0.5},
    "adam_betas": {"optimizer": "adam", "lr": 0.05, "betas": [0.8, 0.95], "eps": 1e-3},
    "adagrad_eps": {"optimizer": "adagrad", "lr": 0.05, "eps": 1e-2},
    "clip_norm": {"optimizer": "adamw", "lr": 0.05, "clip_norm": 0.5},
    "clip_value": {"optimizer": "nesterov", "lr": 0.05, "clip_value": 0.05},
    "clip_both": {"optimizer": "sgd", "lr": 0.5, "clip_norm": 0.7, "clip_value": 0.1},
    "groups": {"optimizer": "adamw", "lr": 0.02, "weight_decay": 0.1,
               "groups": {"bias": {"weight_decay": 0.0}, "head": {"lr": 0.1, "weight_decay": 0.3}}},
    **{f"schedule_{name}": {"optimizer": "momentum", "lr": 0.1, "schedule": name}
       for name in ("linear", "cosine", "step", "one-cycle")},
    **{f"warmup_{name}": {"optimizer": "adamw", "lr": 0.1, "schedule": name, "warmup": 4}
       for name in ("constant", "linear", "cosine", "one-cycle")},
}


def scheduler(optimizer, name, warmup, lr):
    """PyTorch's own scheduler of this name; a rise over `warmup` steps before it by LinearLR."""
    rest = STEPS - warmup
    if name == "one-cycle":
        share = warmup / STEPS if warmup else 0.3
        return lr_scheduler.OneCycleLR(optimizer, max_lr=lr, total_steps=STEPS, pct_start=share, cycle_momentum=False)
    after = {"constant": lambda: lr_scheduler.ConstantLR(optimizer, factor=1, total_iters=1),
             "linear": lambda: lr_scheduler.LinearLR(optimizer, start_factor=1, end_factor=0, total_iters=rest),
             "cosine": lambda: lr_scheduler.CosineAnnealingLR(optimizer, T_max=rest),
             "step": lambda: lr_scheduler.StepLR(optimizer, step_size=rest // 3, gamma=0.1)}[name]()
    if not warmup:
        return after
    # Its first step has lr / warmup, its last one all of it.
    rise = lr_scheduler.LinearLR(optimizer, start_factor=1 / warmup, end_factor=1, total_iters=warmup - 1)
    return lr_scheduler.SequentialLR(optimizer, [rise, after], milestones=[warmup])


def train(case, values, data):
    p = {name: value.clone().requires_grad_() for name, value in values.items()}
    settings = {k: v for k, v in case.items() if k in ("lr", "weight_decay", "momentum", "betas", "eps")}
    groups = [{"params": [value], **next((s for part, s in case.get("groups", {}).items() if part in name), {})}
              for name, value in p.items()]
    step = OPTIMIZERS[case["optimizer"]](groups, **settings)
    schedule = scheduler(step, case["schedule"], case.get("warmup", 0), case["lr"]) if "schedule" in case else None
    losses, rates = [], []
    for t in range(STEPS):
        x, labels = (data[name][t * BATCH : (t + 1) * BATCH] for name in ("x", "labels"))
        y = torch.tanh(x @ p["body.weight"] + p["body.bias"]) @ p["head.weight"]
        loss = torch.nn.functional.mse_loss(y, labels)
        step.zero_grad()
        loss.backward()
        if "clip_norm" in case:
            torch.nn.utils.clip_grad_norm_(p.values(), case["clip_norm"])
        if "clip_value" in case:
            torch.nn.utils.clip_grad_value_(p.values(), case["clip_value"])
        rates.append(step.param_groups[0]["lr"])
        step.step()
        if schedule:
            schedule.step()
        losses.append(loss.item())
    return {**case, "losses": losses, "rates": rates,
            "parameters": {name: [float(f"{v:.9g}") for v in value.flatten().tolist()] for name, value in p.items()}}


def main():
    values, data = make_data()
    lists = lambda tensors: {name: [list(t.shape), t.flatten().tolist()] for name, t in tensors.items()}
    numbers = {"torch": torch.__version__.split("+")[0], "steps": STEPS, "batch": BATCH, "values": lists(values),
               "data": lists(data), "cases": {name: train(case, values, data) for name, case in CASES.items()}}
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    (out / "optimizers.json").write_text(json.dumps(numbers) + "\n")


if __name__ == "__main__":
    main()
