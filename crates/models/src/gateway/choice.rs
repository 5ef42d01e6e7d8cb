//! Chooses the model for a turn.

use super::worst_case::REASK_TOKENS;
use crate::{AuthScheme, ErrorClass, Gateway, ModelError, ModelProblem, Prices, ProviderKind};

/// The model that was chosen for a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenModel {
    /// The name in the catalog.
    pub alias: String,
    pub provider: String,
    /// The provider's id of the model.
    pub id: String,
    pub context: u64,
    pub max_output: u32,
    /// `None` if unknown; then the cost of a turn is unknown too.
    pub prices: Option<Prices>,
    pub is_local: bool,
}

impl ChosenModel {
    /// Maximum tokens of the prompt if the answer may have `max_output` tokens. The context has to hold both, and the
    /// message that asks for a second answer.
    pub fn prompt_limit(&self, max_output: u32) -> u64 {
        let left = self.context.saturating_sub(u64::from(max_output) + REASK_TOKENS);
        left.max(self.context / 4)
    }
}

impl Gateway {
    pub(super) fn pick(&self, wanted: Option<&str>, role: &str) -> Result<ChosenModel, ModelError> {
        let catalog = self.catalog();
        let preferred = match wanted.or_else(|| catalog.roles.get(role).map(String::as_str)) {
            Some(alias) => alias,
            None => return Err(unavailable(role, format!("No model is set for the role {role}."))),
        };
        let Some(model) = catalog.models.get(preferred) else {
            return Err(unavailable(preferred, "This model is not configured.".into()));
        };
        let locals = catalog.models.keys().filter(|alias| self.is_local(alias));
        let mut order = std::iter::once(preferred).chain(model.fallbacks.iter().map(String::as_str));
        let found = order.find(|alias| self.is_usable(alias));
        match found.or_else(|| locals.map(String::as_str).find(|alias| self.is_usable(alias))) {
            Some(alias) => {
                self.chosen(alias).ok_or_else(|| unavailable(alias, "This model is not configured.".into()))
            }
            None => Err(self.none_usable(preferred)),
        }
    }

    /// The error when no model is usable: the reasons for the preferred model and for the local one.
    fn none_usable(&self, preferred: &str) -> ModelError {
        let own = self.unusable(preferred);
        let local = self.local_model_status().and_then(|status| status.problem());
        let message = match (own, local) {
            (Some((_, own)), Some(local)) if own != local => format!("{own} {local}"),
            (Some((_, own)), Some(_) | None) => own.to_string(),
            (None, local) => local.map(|problem| problem.to_string()).unwrap_or_default(),
        };
        unavailable(preferred, message)
    }

    /// Why this model cannot be used now; `None` if it can.
    pub(super) fn unusable(&self, alias: &str) -> Option<(ErrorClass, ModelProblem)> {
        let without_advice = |reason: String| (ErrorClass::Unavailable, ModelProblem::without_advice(reason));
        let catalog = self.catalog();
        let Some(model) = catalog.models.get(alias) else {
            return Some(without_advice("This model is not configured.".into()));
        };
        let Some(provider) = catalog.providers.get(&model.provider) else {
            return Some(without_advice(format!("Provider {} is not configured.", model.provider)));
        };
        match (provider.kind, provider.auth) {
            (ProviderKind::Local, _) => match self.local_model_status() {
                Some(status) => status.problem().map(|problem| (ErrorClass::Unavailable, problem)),
                None => Some(without_advice("This server has no local model.".into())),
            },
            (ProviderKind::Anthropic | ProviderKind::Openai | ProviderKind::Bedrock, AuthScheme::None) => {
                None
            }
            (
                ProviderKind::Anthropic | ProviderKind::Openai | ProviderKind::Bedrock,
                AuthScheme::ApiKey | AuthScheme::Bearer | AuthScheme::Aws,
            ) => {
                let missing = || {
                    let name = &model.provider;
                    ModelProblem {
                        reason: format!("No API key for {name}."),
                        advice: format!("Add one in Settings, Models, or with choir keys set {name}."),
                    }
                };
                self.0.keys.key(&model.provider).is_none().then(|| (ErrorClass::Auth, missing()))
            }
        }
    }

    pub(super) fn chosen(&self, alias: &str) -> Option<ChosenModel> {
        let model = self.catalog().models.get(alias)?;
        Some(ChosenModel {
            alias: alias.into(),
            provider: model.provider.clone(),
            id: model.id.clone(),
            context: model.context,
            max_output: model.max_output,
            prices: model.prices,
            is_local: self.is_local(alias),
        })
    }

    fn is_local(&self, alias: &str) -> bool {
        let catalog = self.catalog();
        let provider = catalog.models.get(alias).and_then(|model| catalog.providers.get(&model.provider));
        provider.is_some_and(|provider| provider.kind == ProviderKind::Local)
    }
}

fn unavailable(model: &str, message: String) -> ModelError {
    ModelError::new(model, ErrorClass::Unavailable, message)
}
