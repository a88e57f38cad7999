"""The lab: studies of the papers' tables and figures, and the open benchmark of methods.

It lies beside the package, in a checkout of the repository: python -m lab
"""
