//! The control plane: who may reach which computer.
