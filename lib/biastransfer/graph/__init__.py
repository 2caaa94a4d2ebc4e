"""The run graph around the notebooks: what a run holds, what a page depends on, executing, rendering."""
