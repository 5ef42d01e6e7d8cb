//! The entry point for all models: chooses a model, sends the request, retries, falls back and reports the cost.
//!
//! The gateway stores no conversations. A turn is a future, and dropping it cancels the request.
//! [`Gateway::worst_case`] bounds the cost of a turn before it is sent.

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
    choice::ChosenModel,
    meter::{MeterReading, UsageMeter},
    turn::CompletedTurn,
    worst_case::WorstCase,
};
use crate::{
    ApiKeys, Catalog, Clock, ErrorClass, LocalModel, LocalModelStatus, ModelError, ModelProblem, Provider,
    RealClock,
    chat::{AnswerForm, ChatRequest, DeltaListener, Message},
    provider::Http,
};

/// Sends requests to models. Cloning is cheap; all clones share the same state.
#[derive(Clone)]
pub struct Gateway(Arc<GatewayInner>);

struct GatewayInner {
    catalog: Arc<Catalog>,
    keys: Arc<dyn ApiKeys>,
    clock: Arc<dyn Clock>,
    http: Arc<Http>,
    /// Limits the concurrent requests to each provider.
    slots: BTreeMap<String, Semaphore>,
    local: RwLock<Option<Arc<dyn LocalModel>>>,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("catalog", &self.0.catalog).finish_non_exhaustive()
    }
}

impl Gateway {
    /// A gateway with connections of its own; [`with_keys`](Self::with_keys) makes one for another user that shares
    /// them.
    pub fn new(catalog: impl Into<Arc<Catalog>>, keys: Arc<dyn ApiKeys>) -> Self {
        Self::with_clock(catalog, keys, Arc::new(RealClock))
    }

    pub fn with_clock(
        catalog: impl Into<Arc<Catalog>>,
        keys: Arc<dyn ApiKeys>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let catalog = catalog.into();
        let http = Arc::new(Http::new(catalog.timeouts));
        Self::assemble(catalog, keys, clock, http, None)
    }

    /// A gateway for the keys of another user. It shares the catalog, the local model and the connections.
    #[must_use]
    pub fn with_keys(&self, keys: Arc<dyn ApiKeys>) -> Self {
        let GatewayInner { catalog, clock, http, .. } = &*self.0;
        Self::assemble(Arc::clone(catalog), keys, Arc::clone(clock), Arc::clone(http), self.local())
    }

    fn assemble(
        catalog: Arc<Catalog>,
        keys: Arc<dyn ApiKeys>,
        clock: Arc<dyn Clock>,
        http: Arc<Http>,
        local: Option<Arc<dyn LocalModel>>,
    ) -> Self {
        let semaphore = |provider: &Provider| Semaphore::new(provider.at_once as usize);
        let slots =
            catalog.providers.iter().map(|(name, provider)| (name.clone(), semaphore(provider))).collect();
        Self(Arc::new(GatewayInner { catalog, keys, clock, http, slots, local: RwLock::new(local) }))
    }

    pub fn catalog(&self) -> &Catalog {
        &self.0.catalog
    }

    /// Makes a local model available.
    pub fn set_local_model(&self, local: Arc<dyn LocalModel>) {
        *self.0.local.write().unwrap_or_else(PoisonError::into_inner) = Some(local);
    }

    /// `None` if there is no local model.
    pub fn local_model_status(&self) -> Option<LocalModelStatus> {
        self.local().map(|local| local.status())
    }

    /// Whether requests to this model are possible now: its key is present, or it needs none.
    pub fn is_usable(&self, alias: &str) -> bool {
        self.unusable(alias).is_none()
    }

    /// Why this model cannot be used now, as a sentence; `None` if it can.
    pub fn unusable_reason(&self, alias: &str) -> Option<String> {
        self.problem(alias).map(|problem| problem.to_string())
    }

    /// The same, with the advice apart.
    pub fn problem(&self, alias: &str) -> Option<ModelProblem> {
        self.unusable(alias).map(|(_, problem)| problem)
    }

    /// Chooses the model for a turn: `wanted`, or else the model of the role. If that one is not usable, its first usable
    /// fallback; if there is none, the local model.
    pub fn choose(&self, wanted: Option<&str>, role: &str) -> Result<ChosenModel, ModelError> {
        self.pick(wanted, role)
    }

    /// The most that a turn can use, whether the chosen model or one of its fallbacks answers.
    pub fn worst_case(&self, chosen: &ChosenModel, request: &ChatRequest) -> WorstCase {
        self.worst_case_of(chosen, request)
    }

    /// Takes a turn. `listener` receives the deltas while they stream; only the returned reply is authoritative. `meter`
    /// reports the usage of the turn, even if its future is dropped early.
    pub async fn take_turn(
        &self,
        chosen: &ChosenModel,
        request: &ChatRequest,
        listener: DeltaListener,
        meter: &UsageMeter,
    ) -> Result<CompletedTurn, ModelError> {
        self.ask_with_fallbacks(chosen, request, listener, meter).await
    }

    /// Sends a short test request to a model, or to the first model of a provider, without retries or fallbacks.
    pub async fn test(&self, name: &str) -> Result<CompletedTurn, ModelError> {
        let models = &self.0.catalog.models;
        let alias = match models.get_key_value(name) {
            Some((alias, _)) => Some(alias),
            None => models.iter().find(|(_, model)| model.provider == name).map(|(alias, _)| alias),
        };
        let Some(chosen) = alias.and_then(|alias| self.chosen(alias)) else {
            let message = "No such model or provider is configured.";
            return Err(ModelError::new(name, ErrorClass::Unavailable, message));
        };
        let request = ChatRequest {
            system: String::new(),
            messages: vec![Message::User { text: "Answer with the word: yes".into() }],
            tools: Vec::new(),
            max_output: 64,
            answer: AnswerForm::Any,
        };
        self.ask_without_fallback(&chosen, &request).await
    }

    fn local(&self) -> Option<Arc<dyn LocalModel>> {
        self.0.local.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
