"""What is claimed about the policies, and what checks it.

`justitia.proofs.reference` is the fair server that the claims compare with, written
from its definition in exact arithmetic. It shares no code with `justitia.policy`.
"""
