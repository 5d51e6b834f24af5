"""Speed, memory and scale of KNIFE: ratios against the textbook formula, measured in one run."""
