//! Which model takes a turn.

use super::worst_case::REASK_TOKENS;
use crate::{Auth, ErrorClass, Gateway, Kind, ModelError, Prices};

/// A model that was chosen, with what one wants to know of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// Our name for it.
    pub alias: String,
    pub provider: String,
    /// The provider's name for it.
    pub id: String,
    pub context: u64,
    pub max_output: u32,
    /// `None`: not known, and neither is what a turn costs.
    pub prices: Option<Prices>,
    pub is_local: bool,
}

impl Chosen {
    /// Tokens that may be said to it, if its answer may take so many: it reads both in one, and what was wrong with a
    /// first answer.
    pub fn room(&self, answer: u32) -> u64 {
        let left = self.context.saturating_sub(u64::from(answer) + REASK_TOKENS);
        left.max(self.context / 4)
    }
}

impl Gateway {
    pub(super) fn pick(&self, wanted: Option<&str>, role: &str) -> Result<Chosen, ModelError> {
        let catalog = self.catalog();
        let preferred = match wanted.or_else(|| catalog.roles.get(role).map(String::as_str)) {
            Some(alias) => alias,
            None => return Err(unavailable(role, format!("No model is set for the role {role}."))),
        };
        let Some(model) = catalog.models.get(preferred) else {
            return Err(unavailable(preferred, "No such model is configured.".into()));
        };
        let locals = catalog.models.keys().filter(|alias| self.is_local(alias));
        let mut order = std::iter::once(preferred).chain(model.fallbacks.iter().map(String::as_str));
        let found = order.find(|alias| self.is_usable(alias));
        match found.or_else(|| locals.map(String::as_str).find(|alias| self.is_usable(alias))) {
            Some(alias) => {
                self.chosen(alias).ok_or_else(|| unavailable(alias, "It is not configured.".into()))
            }
            None => Err(self.nobody(preferred)),
        }
    }

    /// Nobody can be asked: says what is in the way of the preferred model, and of the local one.
    fn nobody(&self, preferred: &str) -> ModelError {
        let own = self.obstacle(preferred);
        let local = self.local_status().and_then(|status| status.obstacle());
        let message = match (own, local) {
            (Some((_, own)), Some(local)) if own != local => format!("{own} {local}"),
            (Some((_, own)), Some(_) | None) => own,
            (None, local) => local.unwrap_or_default(),
        };
        unavailable(preferred, message)
    }

    /// Why this model cannot be asked now.
    pub(super) fn obstacle(&self, alias: &str) -> Option<(ErrorClass, String)> {
        let catalog = self.catalog();
        let Some(model) = catalog.models.get(alias) else {
            return Some((ErrorClass::Unavailable, "No such model is configured.".into()));
        };
        let Some(provider) = catalog.providers.get(&model.provider) else {
            return Some((ErrorClass::Unavailable, format!("There is no provider {}.", model.provider)));
        };
        match (provider.kind, provider.auth) {
            (Kind::Local, _) => match self.local_status() {
                Some(status) => status.obstacle().map(|obstacle| (ErrorClass::Unavailable, obstacle)),
                None => Some((ErrorClass::Unavailable, "There is no local model here.".into())),
            },
            (Kind::Anthropic | Kind::Openai | Kind::Bedrock, Auth::None) => None,
            (Kind::Anthropic | Kind::Openai | Kind::Bedrock, Auth::ApiKey | Auth::Bearer | Auth::Aws) => {
                let missing = || {
                    let name = &model.provider;
                    format!(
                        "There is no key for {name}. Add one in Settings, Models, or with choir keys set {name}."
                    )
                };
                self.0.keys.key(&model.provider).is_none().then(|| (ErrorClass::Auth, missing()))
            }
        }
    }

    pub(super) fn chosen(&self, alias: &str) -> Option<Chosen> {
        let model = self.catalog().models.get(alias)?;
        Some(Chosen {
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
        provider.is_some_and(|provider| provider.kind == Kind::Local)
    }
}

fn unavailable(model: &str, message: String) -> ModelError {
    ModelError::new(model, ErrorClass::Unavailable, message)
}
