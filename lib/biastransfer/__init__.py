"""Gender associations of vision models before and after finetuning, and how far to trust each number."""

import warnings

# timm loads tqdm, which says so in every notebook without ipywidgets; no bar is drawn there
warnings.filterwarnings("ignore", message="IProgress not found")
