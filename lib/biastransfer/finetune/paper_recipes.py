"""The paper's finetunings: a recipe a row of Tables 7 and 8, and the same as its released code ran them."""

from dataclasses import replace

from biastransfer.finetune.settings import Recipe

AS_RELEASED = "as_released"
_READINGS = (
    "Weight decay: the text gives 1e-4 to every model, the appendix to ResNet18 and MoCo alone and also to "
    "all but SimCLR. Read: 1e-4 for all but SimCLR, 0 for SimCLR.",
    "LARS is called a scheduler; read as the optimiser, scaling layers although weight decay is 0.",
    "ReduceLROnPlateau: a tenth after 3 epochs without a better validation metric (not printed).",
    "Augmentation, batch size and input size are not printed; read: random mirror, 32, the backbone's own.",
    "The best epoch by validation mAP (COCO) or micro-F1 (Open Images); each model's own normalisation.",
    "The stopping criterion has no patience in print; read: stop after 5 epochs without a better one, at the "
    "printed number of epochs at the latest.",
)
_DEVIATIONS = {
    "coco": "CLIP's mean and std for every model in training,",
    "openimages": "no normalisation in training,",
}
_COCO, _OPEN_IMAGES = "coco", "openimages"
# (target, backbone): epochs, learning rate, optimiser, schedule - Tables 7 and 8 and the appendix's text
_PRINTED = {
    (_COCO, "bit_m_r50x1"): (25, 0.003, "sgd", "constant"),
    (_COCO, "resnet50"): (25, 0.001, "sgd", "constant"),
    (_COCO, "resnet18"): (25, 0.1, "sgd", "plateau"),
    (_COCO, "clip_vit_b32"): (25, 0.001, "sgd", "constant"),
    (_COCO, "simclr_resnet50"): (25, 0.01, "lars", "constant"),
    (_COCO, "moco_resnet50"): (25, 0.1, "sgd", "plateau"),
    (_OPEN_IMAGES, "bit_m_r50x1"): (15, 0.001, "sgd", "constant"),
    (_OPEN_IMAGES, "resnet50"): (15, 0.001, "sgd", "constant"),
    (_OPEN_IMAGES, "resnet18"): (30, 0.001, "sgd", "constant"),
    (_OPEN_IMAGES, "clip_vit_b32"): (15, 0.001, "sgd", "constant"),
    (_OPEN_IMAGES, "simclr_resnet50"): (15, 0.01, "lars", "constant"),
    (_OPEN_IMAGES, "moco_resnet50"): (15, 0.1, "sgd", "plateau"),
}


def _printed(target: str, backbone: str) -> Recipe:
    epochs, lr, optimizer, schedule = _PRINTED[target, backbone]
    return Recipe(
        f"{target}-{backbone}",
        epochs=epochs,
        lr=lr,
        batch_size=32,
        optimizer=optimizer,
        schedule=schedule,
        weight_decay=0.0 if optimizer == "lars" else 1e-4,
        monitor="mAP" if target == _COCO else "micro-F1",
        stop_after=5,
        notes=_READINGS,
    )


def _as_released(target: str, backbone: str) -> Recipe:
    """Return a row with what the released code did otherwise than the paper says."""
    recipe = _printed(target, backbone)
    decay = {"simclr_resnet50": 1e-5, "clip_vit_b32": 0.0}.get(backbone, recipe.weight_decay)
    notes = [
        f"As the released code ran it: {_DEVIATIONS[target]} ImageNet's in extraction; the last epoch's "
        f"weights, no early stopping; weight decay {decay:g}.",
        "The finetuned network is embedded with ImageNet's statistics; embed the pretrained one with "
        "them too (settings.with_statistics) for a comparison that follows the code.",
    ]
    if target == _OPEN_IMAGES:
        notes.append(
            "Labels with Confidence 0 count as present and unlisted ones as absent: read the target with "
            "reading='released'; this recipe refuses a target with unknown labels."
        )
    return replace(
        recipe,
        name=f"{recipe.name}-{AS_RELEASED}",
        weight_decay=decay,
        stop_after=None,
        keep="last",
        unknown="refused" if target == _OPEN_IMAGES else "masked",
        normalisation="clip" if target == _COCO else "none",
        extraction="imagenet",
        notes=(*notes, *_READINGS[1:4]),
    )


PAPER_RECIPES: dict[str, Recipe] = {
    made.name: made for row in _PRINTED for made in (_printed(*row), _as_released(*row))
}
