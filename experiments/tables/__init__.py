"""Tables: made from frames of records, never from training."""
