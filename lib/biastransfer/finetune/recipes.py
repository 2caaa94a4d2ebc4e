"""Recipes by name: the demo's, the smoke run's, and the paper's."""

from dataclasses import replace

from biastransfer.finetune.paper_recipes import AS_RELEASED, PAPER_RECIPES
from biastransfer.finetune.settings import Recipe

_SEARCHED = (
    "Rates searched on seed 0 by the scenes' validation mAP after 4 epochs (chance .146, new head .18): "
    "efficientnet_lite0 .03 → .506, .1 → .800, .2 → .903, .4 → .943; squeezenet1_1 .003 → .462, .01 → .572, "
    ".015 → .576, .03 → .402.",
    "efficientnet_lite0 takes .2, not .4: half the distance from the pretrained weights for .04 of mAP. "
    "lite1, lite2 and random take lite0's rate unsearched; any other backbone .01.",
)
_DEMO = Recipe(
    "demo",
    epochs=4,
    lr=0.01,
    rates={
        "efficientnet_lite0": 0.2,
        "efficientnet_lite1": 0.2,
        "efficientnet_lite2": 0.2,
        "random": 0.2,
        "squeezenet1_1": 0.01,
    },
    batch_size=16,
    size=128,
    schedule="cosine",
    warmup=0.1,
    shift=8,
    notes=_SEARCHED,
)
_SMOKE = replace(_DEMO, name="smoke", epochs=1, batch_size=8, size=96, max_train=64, max_val=32, max_test=32)

# some hundred photographs: as the demo, with more passes and larger pictures
_COCO_MINI = replace(
    _DEMO,
    name="coco-mini",
    epochs=20,
    size=160,
    notes=(
        "Rates searched on seed 0 by the validation mAP of 46 of 331 COCO pictures after 20 epochs on 152 "
        "(chance .056, new head .13): efficientnet_lite0 .1 → .312, .2 → .412 (.463 in the committed run: 20 "
        "epochs amplify what two machines round differently); squeezenet1_1 .01 → .410, "
        ".03 → .407, .1 → .379.",
        "The best epoch is chosen on the same 46 pictures, so validation mAP flatters; test mAP does not.",
        "lite1, lite2 and random take lite0's rate unsearched; any other backbone .01.",
    ),
)

RECIPES: dict[str, Recipe] = {
    "demo": _DEMO,
    "coco-mini": _COCO_MINI,
    "smoke": _SMOKE,
    **PAPER_RECIPES,
}


def find_recipe(recipe: "str | Recipe", backbone: str) -> Recipe:
    """Return a recipe by its name, or by a target's name for the backbone at hand.

    Parameters
    ----------
    recipe : str or Recipe
        A key of `RECIPES`; ``coco`` and ``openimages`` mean the backbone's row of Table 7 or 8, and
        ``coco-as_released`` and ``openimages-as_released`` that row as the released code ran it; a recipe is
        returned as it is.
    backbone : str
        Name of the backbone.

    Returns
    -------
    Recipe

    Raises
    ------
    ValueError
        Unknown recipe, or a paper's table without this backbone.

    Examples
    --------
    >>> find_recipe("coco", "resnet18").schedule
    'plateau'
    >>> find_recipe("demo", "squeezenet1_1").epochs
    4
    """
    if isinstance(recipe, Recipe):
        return recipe
    stem, released, rest = recipe.partition(f"-{AS_RELEASED}")
    row = f"{stem}-{backbone}{released}" if not rest else ""
    found = RECIPES.get(recipe) or RECIPES.get(row)
    if found is None:
        raise ValueError(
            f"unknown recipe {recipe!r} for {backbone!r}; known: {', '.join(RECIPES)}. "
            "Name one of them or build a Recipe."
        )
    return found
