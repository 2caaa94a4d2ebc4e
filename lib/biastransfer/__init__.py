"""Gender associations of vision models before and after finetuning, and how far each number can be trusted."""
