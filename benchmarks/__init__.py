"""How fast pgeom is beside other ways to do its jobs: `python -m benchmarks` in a checkout.

It is not installed. It may import pgeom, `experiments.engine` and `experiments.shell`, and nothing
imports it. In which order to read it: `jobs` (what is trained, and its arrays), `processes` (every
trial is a call in a process of its own), `jax_training` and `pytorch` (implementations of a job),
`page` (a part of the benchmarks is a value, of which a section is made), then the parts:
`training`, `estimator`, `kernels` and `waiting`.
"""
