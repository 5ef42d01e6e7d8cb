//! The built-in catalog, overrides, and invalid settings.

use super::*;

fn load(text: &str) -> Result<Catalog, CatalogError> {
    Catalog::load(Some(&text.parse().unwrap()))
}

#[test]
fn the_built_in_catalog_serves_every_role_and_every_provider() {
    let catalog = Catalog::load(None).unwrap();
    assert_eq!(catalog.roles.keys().map(String::as_str).collect::<BTreeSet<_>>(), ROLES.into());
    for name in ["anthropic", "bedrock", "openai", "zai", "moonshot", "local"] {
        assert!(catalog.models.values().any(|model| model.provider == name), "{name}");
    }
    // One key of any provider is enough: the fallbacks of each role's model reach every provider that needs a key.
    for alias in catalog.roles.values() {
        let model = &catalog.models[alias];
        let reached = model.fallbacks.iter().map(|fallback| catalog.models[fallback].provider.as_str());
        let reached: BTreeSet<&str> = reached.chain([model.provider.as_str()]).collect();
        assert_eq!(reached, ["anthropic", "bedrock", "openai", "zai", "moonshot"].into(), "{alias}");
    }
}

#[test]
fn overrides_change_only_the_settings_they_name() {
    let catalog = load(
        r#"
        [roles]
        writer = "mine"
        [provider.own-server]
        kind = "openai"
        base_url = "http://10.0.0.5:8000/v1"
        auth = "none"
        at_once = 2
        [model.mine]
        provider = "own-server"
        id = "llama"
        context = 32768
        max_output = 4096
        extra = { chat_template_kwargs = { enable_thinking = false } }
        [model.claude-sonnet.prices]
        input = 1
        "#,
    );
    let (catalog, built_in) = (catalog.unwrap(), Catalog::load(None).unwrap());
    assert_eq!(catalog.roles["writer"], "mine");
    assert_eq!(catalog.roles["conductor"], built_in.roles["conductor"]);
    assert_eq!(catalog.models["mine"].prices, None, "a missing price is unknown");
    let (new, old) =
        (catalog.models["claude-sonnet"].prices.unwrap(), built_in.models["claude-sonnet"].prices.unwrap());
    assert_eq!((new.input, new.output), (1, old.output));
    assert_eq!(catalog.retry, built_in.retry);
}

#[test]
fn errors_name_the_invalid_key() {
    let cases = [
        ("role.writer = \"gpt\"", "role", "unknown table"),
        ("roles.wrtier = \"gpt\"", "roles.wrtier", "unknown role; the roles are conductor"),
        ("roles.writer = \"gpt9\"", "roles.writer", "unknown model gpt9"),
        ("roles.writer = 9", "roles.writer", "invalid type"),
        (
            "model.gpt.provider = \"opnai\"",
            "model.gpt.provider",
            "unknown provider opnai; the providers are anthropic",
        ),
        ("model.gpt.contxt = 9", "model.gpt", "unknown field `contxt`"),
        ("model.gpt.context = \"big\"", "model.gpt", "invalid type"),
        ("model.gpt.max_output = 0", "model.gpt.max_output", "must be at least 1"),
        ("model.gpt.supports = [\"flying\"]", "model.gpt", "unknown variant `flying`"),
        ("model.gpt.fallbacks = [\"gpt9\"]", "model.gpt.fallbacks", "unknown model gpt9"),
        ("model.gpt.fallbacks = [\"gpt\"]", "model.gpt.fallbacks", "its own fallback"),
        ("model.gpt.prices.inptu = 1", "model.gpt", "unknown field `inptu`"),
        ("model.new.id = \"x\"", "model.new", "missing field `provider`"),
        ("provider.openai.base_url = \"ftp://x\"", "provider.openai.base_url", "must begin with http"),
        ("provider.openai.base_url = \"x\"", "provider.openai", "relative URL without a base"),
        ("provider.openai.at_once = 0", "provider.openai.at_once", "at least 1"),
        ("provider.local.at_once = 2", "provider.local.at_once", "must be 1"),
        ("provider.openai.kind = \"smoke\"", "provider.openai", "unknown variant `smoke`"),
        ("provider.openai.auth = \"aws\"", "provider.openai.auth", "only valid for Bedrock"),
        ("provider.openai.region = \"x\"", "provider.openai.region", "is not used"),
        ("provider.local.base_url = \"http://x\"", "provider.local.base_url", "is not used"),
        (
            "provider.new = { kind = \"openai\", auth = \"none\", at_once = 1 }",
            "provider.new.base_url",
            "is missing",
        ),
        ("retry.attempts = 0", "retry.attempts", "at least 1"),
        ("retry.atempts = 3", "retry", "unknown field `atempts`"),
        ("patience.connect_ms = -1", "patience", "invalid value"),
    ];
    for (text, key, problem) in cases {
        let error = load(text).unwrap_err();
        assert_eq!(error.key, key, "{text}: {error}");
        assert!(error.problem.contains(problem), "{text}: {error}");
    }
}

#[test]
fn the_local_context_is_the_largest_of_all_local_models() {
    let built_in = Catalog::load(None).unwrap();
    assert_eq!(built_in.local_context(), Some(built_in.models["local"].context));
    assert_eq!(load("model.local.context = 5000").unwrap().local_context(), Some(5000));
    let two =
        load("[model.long]\nprovider = \"local\"\nid = \"x\"\ncontext = 12000\nmax_output = 512").unwrap();
    assert_eq!(two.local_context(), Some(12_000));
}
