"""The command `dataflow-assets`: what it takes, what it prints, what it ends with."""

import gc

# A third of a million objects come into being while modules are imported, and none goes: looking for
# garbage among them costs a tenth of the start. `run` and `main` turn it on again.
gc.disable()
