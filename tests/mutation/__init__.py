"""Mutation testing: small errors are put into the library, and the tests have to notice them.

python -m tests.mutation --mutants 200 --minutes 60
"""
