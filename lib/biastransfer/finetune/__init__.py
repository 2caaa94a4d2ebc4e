"""Finetuning on a multi-label target: data, recipes, loop, evaluation and the tables of what came out."""

from biastransfer.finetune.data import load_target
from biastransfer.finetune.evaluation import chance_map, chance_micro_f1, mean_average_precision, micro_f1
from biastransfer.finetune.loop import FinetuneResult, finetune
from biastransfer.finetune.prepare import ensure, prepare_target, target_folder
from biastransfer.finetune.recipes import RECIPES, find_recipe
from biastransfer.finetune.settings import Recipe
from biastransfer.finetune.tables import curves, summary, table
from biastransfer.finetune.targets import Split, Target, make_target
from biastransfer.finetune.trainable import load_trainable
from biastransfer.finetune.training import DivergedError

__all__ = [
    "RECIPES",
    "DivergedError",
    "FinetuneResult",
    "Recipe",
    "Split",
    "Target",
    "chance_map",
    "chance_micro_f1",
    "curves",
    "ensure",
    "find_recipe",
    "finetune",
    "load_target",
    "load_trainable",
    "make_target",
    "mean_average_precision",
    "micro_f1",
    "prepare_target",
    "summary",
    "table",
    "target_folder",
]
