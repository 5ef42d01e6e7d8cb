//! The one door to all models: chooses one, asks it, asks again where that may help, and says what it cost.
//!
//! It holds no conversation and keeps nothing: a turn is a future, and dropping it ends the request. What a turn may
//! cost is known before it is taken ([`Gateway::worst_case`]).

mod choice;
mod meter;
#[cfg(test)]
mod tests;
mod turn;
mod worst_case;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use tokio::sync::Semaphore;

pub use self::{
    choice::Chosen,
    meter::{Meter, Taken},
    turn::Turn,
    worst_case::WorstCase,
};
use crate::{
    Catalog, Clock, ErrorClass, Keys, LocalModel, LocalStatus, ModelError, Provider, RealClock,
    chat::{AnswerForm, Listener, Message, Request},
    provider::Http,
};

/// See the module. A clone is another handle to the same gateway.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    catalog: Catalog,
    keys: Arc<dyn Keys>,
    clock: Arc<dyn Clock>,
    http: Http,
    /// How many turns each provider may still begin.
    places: BTreeMap<String, Semaphore>,
    local: RwLock<Option<Arc<dyn LocalModel>>>,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("catalog", &self.0.catalog).finish_non_exhaustive()
    }
}

impl Gateway {
    pub fn new(catalog: Catalog, keys: Arc<dyn Keys>) -> Self {
        Self::with_clock(catalog, keys, Arc::new(RealClock))
    }

    pub fn with_clock(catalog: Catalog, keys: Arc<dyn Keys>, clock: Arc<dyn Clock>) -> Self {
        let place = |provider: &Provider| Semaphore::new(provider.at_once as usize);
        let places =
            catalog.providers.iter().map(|(name, provider)| (name.clone(), place(provider))).collect();
        let http = Http::new(catalog.patience);
        Self(Arc::new(Inner { catalog, keys, clock, http, places, local: RwLock::new(None) }))
    }

    pub fn catalog(&self) -> &Catalog {
        &self.0.catalog
    }

    /// From now on there is a model on this machine.
    pub fn set_local(&self, local: Arc<dyn LocalModel>) {
        *self.0.local.write().unwrap_or_else(PoisonError::into_inner) = Some(local);
    }

    /// `None` if there is no local model.
    pub fn local_status(&self) -> Option<LocalStatus> {
        self.local().map(|local| local.status())
    }

    /// Whether this model could be asked now: there is a key for it, or it needs none.
    pub fn is_usable(&self, alias: &str) -> bool {
        self.obstacle(alias).is_none()
    }

    /// What is in the way of asking this model, as a sentence.
    pub fn why_not(&self, alias: &str) -> Option<String> {
        self.obstacle(alias).map(|(_, why)| why)
    }

    /// The model for a turn: the wanted one, or that of the role; if it cannot be asked, its first fallback that can;
    /// if none can, the local one.
    pub fn choose(&self, wanted: Option<&str>, role: &str) -> Result<Chosen, ModelError> {
        self.pick(wanted, role)
    }

    /// What a turn takes at most, whoever of the chosen model and its fallbacks answers it in the end.
    pub fn worst_case(&self, chosen: &Chosen, request: &Request) -> WorstCase {
        self.bound(chosen, request)
    }

    /// Takes a turn. `listener` hears what arrives; only the returned reply counts. `meter` tells what the turn has taken,
    /// also where it is dropped before its end.
    pub async fn take_turn(
        &self,
        chosen: &Chosen,
        request: &Request,
        listener: Listener,
        meter: &Meter,
    ) -> Result<Turn, ModelError> {
        self.ask_in_order(chosen, request, listener, meter).await
    }

    /// Asks a model, or the first model of a provider, for a word: once, and nobody in its place.
    pub async fn test(&self, name: &str) -> Result<Turn, ModelError> {
        let models = &self.0.catalog.models;
        let alias = match models.get_key_value(name) {
            Some((alias, _)) => Some(alias),
            None => models.iter().find(|(_, model)| model.provider == name).map(|(alias, _)| alias),
        };
        let Some(chosen) = alias.and_then(|alias| self.chosen(alias)) else {
            let message = "No such model or provider is configured.";
            return Err(ModelError::new(name, ErrorClass::Unavailable, message));
        };
        let request = Request {
            system: String::new(),
            messages: vec![Message::User { text: "Answer with the word: yes".into() }],
            tools: Vec::new(),
            max_output: 64,
            answer: AnswerForm::Any,
        };
        self.ask_once(&chosen, &request).await
    }

    fn local(&self) -> Option<Arc<dyn LocalModel>> {
        self.0.local.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
