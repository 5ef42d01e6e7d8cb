//! How far the projector is with long work.

/// What the projector is doing, for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressPhase {
    /// Comparing the workspace with the ledger.
    Scanning,
    /// Updating the read models.
    Indexing,
    /// Writing files.
    Writing,
    /// Making them durable.
    Syncing,
}

/// Receives the progress of a phase: done and total.
pub type Progress<'a> = &'a (dyn Fn(ProgressPhase, u64, u64) + 'a);
