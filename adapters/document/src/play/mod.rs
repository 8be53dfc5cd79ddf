//! The draft's controller over a modelled path, in virtual time, without a guest: the same code as the stack's.

pub mod command;
mod path;
#[cfg(test)]
mod tests;
mod transport;

pub use path::{Discipline, Path, Window};
#[cfg(test)]
pub use transport::{Packet, SMSS};
pub use transport::{Outcome, Sample, Writes, play};
