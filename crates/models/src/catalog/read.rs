//! Loads the built-in catalog, applies the overrides and validates the result.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::{AuthScheme, Catalog, CatalogError, ProviderKind, ROLES};

const BUILT_IN: &str = include_str!("../../catalog.toml");

impl Catalog {
    /// The built-in catalog with `overrides` (`[models]` in `choir.toml`) applied.
    pub fn load(overrides: Option<&Table>) -> Result<Self, CatalogError> {
        let mut table: Table = BUILT_IN.parse().map_err(|error| invalid("", error))?;
        if let Some(overrides) = overrides {
            merge_tables(&mut table, overrides);
        }
        let catalog = parse(table)?;
        catalog.check()?;
        Ok(catalog)
    }

    fn check(&self) -> Result<(), CatalogError> {
        for (name, provider) in &self.providers {
            let key = |field: &str| format!("provider.{name}.{field}");
            let needs_url = provider.kind != ProviderKind::Local;
            match &provider.base_url {
                None if needs_url => return Err(invalid(&key("base_url"), "is missing")),
                Some(url) if !["http", "https"].contains(&url.scheme()) => {
                    return Err(invalid(&key("base_url"), "must begin with http:// or https://"));
                }
                Some(_) if !needs_url => {
                    return Err(invalid(
                        &key("base_url"),
                        "is not used: the local model reports its own address",
                    ));
                }
                Some(_) | None => {}
            }
            if provider.at_once == 0 {
                return Err(invalid(&key("at_once"), "must be at least 1"));
            }
            if provider.kind == ProviderKind::Local && provider.at_once != 1 {
                return Err(invalid(
                    &key("at_once"),
                    "must be 1: the local model answers one request at a time",
                ));
            }
            let is_aws = provider.auth == AuthScheme::Aws;
            if is_aws && provider.kind != ProviderKind::Bedrock {
                return Err(invalid(&key("auth"), "\"aws\" is only valid for Bedrock"));
            }
            match (is_aws, &provider.region) {
                (true, None) => return Err(invalid(&key("region"), "is missing")),
                (false, Some(_)) => {
                    return Err(invalid(&key("region"), "is not used: only AWS signatures need it"));
                }
                (true, Some(_)) | (false, None) => {}
            }
        }
        self.check_models()?;
        for (role, alias) in &self.roles {
            let key = format!("roles.{role}");
            if !ROLES.contains(&role.as_str()) {
                return Err(invalid(&key, format!("unknown role; the roles are {}", ROLES.join(", "))));
            }
            self.check_alias(&key, alias)?;
        }
        if self.retry.attempts == 0 {
            return Err(invalid("retry.attempts", "must be at least 1"));
        }
        Ok(())
    }

    fn check_models(&self) -> Result<(), CatalogError> {
        for (alias, model) in &self.models {
            let key = |field: &str| format!("model.{alias}.{field}");
            if !self.providers.contains_key(&model.provider) {
                let providers: Vec<&str> = self.providers.keys().map(String::as_str).collect();
                let problem = format!(
                    "unknown provider {}; the providers are {}",
                    model.provider,
                    providers.join(", ")
                );
                return Err(invalid(&key("provider"), problem));
            }
            if model.max_output == 0 || u64::from(model.max_output) > model.context {
                return Err(invalid(&key("max_output"), "must be at least 1 and at most `context`"));
            }
            for fallback in &model.fallbacks {
                self.check_alias(&key("fallbacks"), fallback)?;
                if fallback == alias {
                    return Err(invalid(&key("fallbacks"), "a model cannot be its own fallback"));
                }
            }
        }
        Ok(())
    }

    fn check_alias(&self, key: &str, alias: &str) -> Result<(), CatalogError> {
        match self.models.contains_key(alias) {
            true => Ok(()),
            false => Err(invalid(key, format!("unknown model {alias}"))),
        }
    }
}

/// Merges tables recursively and replaces all other values.
fn merge_tables(base: &mut Table, overrides: &Table) {
    for (key, value) in overrides {
        match (base.get_mut(key), value) {
            (Some(Value::Table(base)), Value::Table(overrides)) => merge_tables(base, overrides),
            (Some(_) | None, _) => _ = base.insert(key.clone(), value.clone()),
        }
    }
}

fn invalid(key: &str, problem: impl ToString) -> CatalogError {
    CatalogError { key: key.into(), problem: problem.to_string() }
}

/// Parses entry by entry, so that an error names the key.
fn parse(mut table: Table) -> Result<Catalog, CatalogError> {
    let mut section = |name: &str| match table.remove(name) {
        Some(Value::Table(section)) => Ok(section),
        Some(_) => Err(invalid(name, "must be a table")),
        None => Ok(Table::new()),
    };
    let catalog = Catalog {
        providers: entries("provider", section("provider")?)?,
        models: entries("model", section("model")?)?,
        roles: entries("roles", section("roles")?)?,
        retry: entry("retry", section("retry")?.into())?,
        timeouts: entry("patience", section("patience")?.into())?,
    };
    match table.keys().next() {
        None => Ok(catalog),
        Some(key) => {
            Err(invalid(key, "unknown table; the tables are provider, model, roles, retry, patience"))
        }
    }
}

fn entries<T: DeserializeOwned>(section: &str, table: Table) -> Result<BTreeMap<String, T>, CatalogError> {
    let read =
        |(name, value): (String, Value)| Ok((name.clone(), entry(&format!("{section}.{name}"), value)?));
    table.into_iter().map(read).collect()
}

fn entry<T: DeserializeOwned>(key: &str, value: Value) -> Result<T, CatalogError> {
    value.try_into().map_err(|error: toml::de::Error| invalid(key, error.message()))
}
