//! The draft's controller over a modelled path, in virtual time, without a guest: the same code as the stack's.

mod path;
mod transport;

pub use path::{Discipline, Path, Window};
pub use transport::{Outcome, PAYLOAD, SMSS, Sample, Writes, play};

#[cfg(test)]
mod tests;
