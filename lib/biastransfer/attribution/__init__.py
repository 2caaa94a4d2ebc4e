"""Attribution: heat maps, what they remove pixels with, and how far they can be believed."""
