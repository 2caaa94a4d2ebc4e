"""The generated scenes as a target, and the smoke run's checkpoints, made where they are missing."""

from collections.abc import Iterable
from pathlib import Path

from biastransfer import distributed, paths
from biastransfer.analysis_sets import AnalysisSet
from biastransfer.analysis_sets.generated import drawing_code
from biastransfer.finetune import exclusion
from biastransfer.finetune.data import load_target
from biastransfer.finetune.loop import finetune
from biastransfer.finetune.recipes import RECIPES
from biastransfer.finetune.resume import resume_file
from biastransfer.finetune.tables import history_file
from biastransfer.finetune.targets import Target, check_max_train

SMOKE = "smoke"
SCENES = "scenes"


def target_folder(run: str, target: str) -> Path:
    """Return the folder of a target's pictures: one for all runs, but for ``smoke`` fewer scenes of its own.

    Scenes name the code that draws them, so that they are drawn anew when it has changed.
    """
    if target != SCENES:
        return paths.raw("targets", target)
    return paths.raw("targets", "-".join([target, *([run] if run == SMOKE else []), drawing_code()]))


def prepare_target(
    run: str,
    target: str = SCENES,
    *,
    root: Path | str = "",
    exclude: Iterable[AnalysisSet] = (),
    near: bool = True,
    **options,
) -> Target:
    """Load a target by name, drawing the scenes first where they are missing.

    Parameters
    ----------
    run : str
        ``smoke`` has fewer scenes: as many as its recipe uses.
    target : str
        ``scenes``, or the name of a folder in `target_folder` that `load_target` reads.
    root : path-like
        That folder, where it lies elsewhere; scenes are always drawn in their own.
    exclude : iterable of AnalysisSet
        Their pictures are taken out of the training and validation splits (`exclusion.exclude`); what was
        found is written to the run's ``exclusion-<target>.csv``.
    near : bool
        Also list near-duplicates, for which every picture is decoded.
    **options
        Passed to `load_target`: ``max_train``, ``seed``, ``reading``, ``shares``. With `exclude`, the
        ``max_train`` pictures are drawn from those that are left.

    Returns
    -------
    Target

    Raises
    ------
    FileNotFoundError
        A target other than ``scenes`` whose folder does not exist.
    """
    folder = Path(root) if root and target != SCENES else target_folder(run, target)
    if target == SCENES:
        from biastransfer.analysis_sets.scenes import write_target

        recipe = RECIPES[SMOKE]
        few = {"n_train": recipe.max_train, "n_val": recipe.max_val, "n_test": recipe.max_test}
        # written whole; does nothing where it is there
        distributed.from_first(lambda: write_target(folder, **(few if run == SMOKE else {})) and None)
    sets, most = list(exclude), options.get("max_train")
    if not sets:
        return load_target(folder, **options)
    check_max_train(most)
    if most is not None:  # as many more as can be taken out, if each has one copy
        options["max_train"] = most + sum(len(one.items) for one in sets)
    loaded, found = exclusion.exclude(
        load_target(folder, **options), sets, near=near, max_train=most, seed=options.get("seed", 0)
    )
    found.insert(0, "target", target)
    found.insert(0, "run", run)
    if distributed.is_first():
        paths.write_csv(found, paths.results(run, f"exclusion-{target}.csv"))
    return loaded


def ensure(run: str, names, target: str = SCENES, seeds=(0,)) -> list[Path]:
    """Train the checkpoints that are missing in the smoke run; other runs train in notebook 02.

    Parameters
    ----------
    run : str
        Anything but ``smoke`` does nothing here.
    names : sequence of str
        Backbones.
    target : str
    seeds : sequence of int

    Returns
    -------
    list of Path
        The checkpoints that were trained now.

    Examples
    --------
    >>> ensure("demo", ["squeezenet1_1"])
    []
    """
    if run != SMOKE:
        return []
    missing = [(name, seed) for name in names for seed in seeds if not _trained(run, name, target, seed)]
    if not missing:
        return []
    loaded = prepare_target(run, target)
    return [
        finetune(name, loaded, run=run, target_name=target, recipe=SMOKE, seed=seed).best
        for name, seed in missing
    ]


def _trained(run: str, name: str, target: str, seed: int) -> bool:
    keys = (run, name, target, seed)
    whole = paths.checkpoint(*keys).is_file() and history_file(*keys).is_file()
    return whole and not resume_file(*keys).is_file()
