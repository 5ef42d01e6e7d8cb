//! Models: one way to talk to all of them, what they cost, and which of them does what.
//!
//! [`chat`] is what is said and answered, whoever serves it; it is also the form in which replies are kept. [`Catalog`]
//! says which models there are, [`Gateway`] talks to them, [`Function`] asks one typed question. Keys come from whoever
//! implements [`Keys`] and leave this crate only in the headers of a request. This crate knows no event, no agent and
//! no file.

mod catalog;
pub mod chat;
mod clock;
mod error;
mod function;
mod gateway;
mod local;
mod mask;
mod prices;
mod provider;
mod reading;
mod repair;
mod schema;
mod secret;
mod size;
mod spoken;

pub use catalog::{Auth, Catalog, CatalogError, Kind, Model, Provider, ROLES, Support};
pub use clock::{Clock, RealClock};
pub use error::{ErrorClass, ModelError};
pub use function::{Answer, Function};
pub use gateway::{Chosen, Gateway, Meter, Taken, Turn, WorstCase};
pub use local::{LocalEndpoint, LocalModel, LocalStatus};
pub use prices::Prices;
pub use provider::prepare_tls;
pub use secret::{Keys, Secret};
pub use size::BYTES_OF_A_TOKEN;
