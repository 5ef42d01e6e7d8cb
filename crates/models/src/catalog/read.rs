//! Reading the catalog: the built-in one, what is laid over it, and what can be wrong.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::{Auth, Catalog, CatalogError, Kind, ROLES};

const BUILT_IN: &str = include_str!("../../catalog.toml");

impl Catalog {
    /// The built-in catalog with the tables of `overrides` (`[models]` of `choir.toml`) laid over it.
    pub fn load(overrides: Option<&Table>) -> Result<Self, CatalogError> {
        let mut table: Table = BUILT_IN.parse().map_err(|error| wrong("", error))?;
        if let Some(overrides) = overrides {
            lay_over(&mut table, overrides);
        }
        let catalog = parse(table)?;
        catalog.check()?;
        Ok(catalog)
    }

    fn check(&self) -> Result<(), CatalogError> {
        for (name, provider) in &self.providers {
            let key = |field: &str| format!("provider.{name}.{field}");
            let needs_url = provider.kind != Kind::Local;
            match &provider.base_url {
                None if needs_url => return Err(wrong(&key("base_url"), "is missing")),
                Some(url) if !["http", "https"].contains(&url.scheme()) => {
                    return Err(wrong(&key("base_url"), "must begin with http:// or https://"));
                }
                Some(_) if !needs_url => {
                    return Err(wrong(
                        &key("base_url"),
                        "is not read: the local model says itself where it listens",
                    ));
                }
                Some(_) | None => {}
            }
            if provider.at_once == 0 {
                return Err(wrong(&key("at_once"), "must be at least 1"));
            }
            if provider.kind == Kind::Local && provider.at_once != 1 {
                return Err(wrong(
                    &key("at_once"),
                    "must be 1: the local model shares this machine with everything",
                ));
            }
            let is_aws = provider.auth == Auth::Aws;
            if is_aws != (provider.kind == Kind::Bedrock) && is_aws {
                return Err(wrong(&key("auth"), "only Bedrock takes keys of AWS"));
            }
            match (is_aws, &provider.region) {
                (true, None) => return Err(wrong(&key("region"), "is missing")),
                (false, Some(_)) => {
                    return Err(wrong(&key("region"), "is not read: only signatures for AWS need it"));
                }
                (true, Some(_)) | (false, None) => {}
            }
        }
        self.check_models()?;
        for (role, alias) in &self.roles {
            let key = format!("roles.{role}");
            if !ROLES.contains(&role.as_str()) {
                return Err(wrong(&key, format!("there is no such role; there are {}", ROLES.join(", "))));
            }
            self.check_alias(&key, alias)?;
        }
        if self.retry.attempts == 0 {
            return Err(wrong("retry.attempts", "must be at least 1"));
        }
        Ok(())
    }

    fn check_models(&self) -> Result<(), CatalogError> {
        for (alias, model) in &self.models {
            let key = |field: &str| format!("model.{alias}.{field}");
            if !self.providers.contains_key(&model.provider) {
                let providers: Vec<&str> = self.providers.keys().map(String::as_str).collect();
                let problem =
                    format!("there is no provider {}; there are {}", model.provider, providers.join(", "));
                return Err(wrong(&key("provider"), problem));
            }
            if model.max_output == 0 || u64::from(model.max_output) > model.context {
                return Err(wrong(&key("max_output"), "must be at least 1, and at most `context`"));
            }
            for fallback in &model.fallbacks {
                self.check_alias(&key("fallbacks"), fallback)?;
                if fallback == alias {
                    return Err(wrong(&key("fallbacks"), "a model cannot take its own place"));
                }
            }
        }
        Ok(())
    }

    fn check_alias(&self, key: &str, alias: &str) -> Result<(), CatalogError> {
        match self.models.contains_key(alias) {
            true => Ok(()),
            false => Err(wrong(key, format!("there is no model {alias}"))),
        }
    }
}

/// Tables are merged; everything else is replaced.
fn lay_over(under: &mut Table, over: &Table) {
    for (key, value) in over {
        match (under.get_mut(key), value) {
            (Some(Value::Table(under)), Value::Table(over)) => lay_over(under, over),
            (Some(_) | None, _) => _ = under.insert(key.clone(), value.clone()),
        }
    }
}

fn wrong(key: &str, problem: impl ToString) -> CatalogError {
    CatalogError { key: key.into(), problem: problem.to_string() }
}

/// Reads entry by entry, so that a mistake is told with the key that it is at.
fn parse(mut table: Table) -> Result<Catalog, CatalogError> {
    let mut section = |name: &str| match table.remove(name) {
        Some(Value::Table(section)) => Ok(section),
        Some(_) => Err(wrong(name, "must be a table")),
        None => Ok(Table::new()),
    };
    let catalog = Catalog {
        providers: entries("provider", section("provider")?)?,
        models: entries("model", section("model")?)?,
        roles: entries("roles", section("roles")?)?,
        retry: entry("retry", section("retry")?.into())?,
        patience: entry("patience", section("patience")?.into())?,
    };
    match table.keys().next() {
        None => Ok(catalog),
        Some(key) => {
            Err(wrong(key, "there is no such table; there are provider, model, roles, retry, patience"))
        }
    }
}

fn entries<T: DeserializeOwned>(section: &str, table: Table) -> Result<BTreeMap<String, T>, CatalogError> {
    let read =
        |(name, value): (String, Value)| Ok((name.clone(), entry(&format!("{section}.{name}"), value)?));
    table.into_iter().map(read).collect()
}

fn entry<T: DeserializeOwned>(key: &str, value: Value) -> Result<T, CatalogError> {
    value.try_into().map_err(|error: toml::de::Error| wrong(key, error.message()))
}
