# The run graph: which notebook is executed with which parameters, after which others, and on what it depends.
# Usually called by `make book`; alone: snakemake --profile profiles/local --config run=demo
import json
import sys

from biastransfer import paths
from biastransfer.graph.dependencies import content_hash, library_files
from biastransfer.graph.entries import DATA
from biastransfer.graph.runs import plan

PAGES = plan(str(config.get("run", "demo")), {name: str(config[name]) for name in DATA if config.get(name)})
EXECUTED = {page.name: str(page.executed) for page in PAGES if page.run != "released"}
RELEASED = {page.name: str(page.executed) for page in PAGES if page.run == "released"}


rule all:
    input:
        [str(file) for page in PAGES for file in (page.executed, *page.writes)],


for page in PAGES:
    beside = RELEASED if page.run == "released" else EXECUTED

    rule:
        name:
            f"{page.run}_{page.name}"
        input:
            notebook=str(paths.notebook(page.notebook)),
            # what the numbers depend on: the library it imports, the pinned packages, the pages before it
            library=[str(file) for file in library_files(paths.notebook(page.notebook))],
            packages=str(paths.root() / "requirements.lock"),
            before=[beside[name] for name in page.after],
            data=[str(file) for file in page.reads],
        output:
            page=str(page.executed),
            files=[str(file) for file in page.writes],
        log:
            notebook=str(paths.failed(page.run, page.name)),  # a failed job's log is kept, its output is not
        params:
            json=json.dumps(page.parameters, sort_keys=True),
            threads=page.threads,
            # the same files by their bytes: a clock that went back hides a change from their times
            content=content_hash([paths.notebook(page.notebook), *library_files(paths.notebook(page.notebook))]),
        resources:
            torch=int(page.torch and page.threads > 1),  # one at a time, unless each leaves a core free
            **page.resources,  # what a cluster is asked for: gpu, mem_mb, runtime, cpus_per_task
        shell:
            "{sys.executable:q} -m biastransfer.graph.execute --threads {params.threads} {input.notebook:q} {output.page:q} {log.notebook:q} {params.json:q}"
