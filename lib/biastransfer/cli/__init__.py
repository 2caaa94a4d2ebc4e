"""The command line: each command is a module here that calls the library and says what came of it.

Exit status: 0 fine; 1 the answer is bad (a file did not come, the linter found an error, training diverged, a
rule of an audit failed); 2 the question is (an unknown name, a missing folder).
"""

import argparse
import os
import sys
from collections.abc import Sequence

from . import auditing, fetching, linting, training

COMMANDS = {"fetch": fetching, "lint": linting, "finetune": training, "audit": auditing}
_STATUS = (
    "exit status: 0 fine; 1 a file did not come, the linter found an error, training diverged, a rule of an "
    "audit failed or could not be decided; 2 wrong call"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Otherwise those of the process.

    Returns
    -------
    int
        The exit status, see above.
    """
    given = _parser().parse_args(arguments)
    try:
        status = COMMANDS[given.command].run(given)
        sys.stdout.flush()  # here, where a reader that went away is still known
        return status
    except BrokenPipeError:  # as `| head` leaves it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python still flushes
        return 141  # as a shell says of a program that the closed pipe ended
    except KeyboardInterrupt:
        print("stopped; what came so far is kept", file=sys.stderr)
        return 130
    except (ValueError, OSError) as problem:
        print(f"biastransfer {given.command}: {problem}", file=sys.stderr)
        return 2
    except ArithmeticError as problem:  # finetune.DivergedError, without importing PyTorch for it
        print(f"biastransfer {given.command}: {problem}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="biastransfer",
        description="Gender associations before and after finetuning: data, checks, training, audits.",
        epilog=_STATUS,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, module in COMMANDS.items():
        own = commands.add_parser(
            name,
            help=module.WHAT,
            description=f"{module.WHAT[0].upper()}{module.WHAT[1:]}.",
            epilog=f"examples:\n{module.EXAMPLES}\n\n{_STATUS}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(own)
    return parser
