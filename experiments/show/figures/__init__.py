"""Figures: each draws frames of records or logits; `style` writes them."""
