//! The server of a computer: every route, everyone who calls it, and whatever they send.

mod bad_input;
mod files;
mod going_back;
mod house;
mod routes;
mod socket;
mod terminals;
