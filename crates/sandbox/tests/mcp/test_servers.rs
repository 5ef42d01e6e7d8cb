//! MCP servers in a temporary folder, and one key in the vault.

use std::path::PathBuf;
use std::sync::Arc;

use agent_host::agent_services::AgentServices;
use agent_host::mcp_cells::McpServerCells;
use agent_host::mcp_tools::McpTools;
use agents::roles::Role;
use agents::toolbox::{ExternalTool, ExternalToolResult, ToolOffer, Toolbox};
use computer::cells::CellSettings;
use computer::paths::ComputerPaths;
use models::{ApiKey, ApiKeys};
use serde_json::{Value, json};
use shared_types::UserId;
use tempfile::TempDir;

pub(crate) const SECRET: &str = "s3cret-of-ada";

struct OneKey;

impl ApiKeys for OneKey {
    fn key(&self, name: &str) -> Option<ApiKey> {
        (name == "tracker").then(|| ApiKey::new(SECRET))
    }
}

pub(crate) struct TestServers {
    pub(crate) folder: TempDir,
    pub(crate) tools: McpTools,
}

impl TestServers {
    /// `{fixtures}` in the settings stands for where the fixtures are.
    pub(crate) fn new(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mine.txt"), "mine").unwrap();
        let tools = open(&folder, settings);
        Self { folder, tools }
    }

    /// As after a restart, perhaps with other settings.
    pub(crate) fn reopen(&mut self, settings: &str) {
        self.tools = open(&self.folder, settings);
    }

    pub(crate) async fn offer(&self) -> ToolOffer {
        self.tools.offered(Role::Researcher).await
    }

    pub(crate) async fn find(&self, name: &str) -> Option<ExternalTool> {
        self.tools.find(Role::Researcher, name).await
    }

    /// Calls a tool of the tracker.
    pub(crate) async fn call(&self, tool: &str, input: Value) -> ExternalToolResult {
        let foreign = self.find(&format!("mcp_tracker_{tool}")).await.unwrap();
        let Value::Object(input) = input else { panic!("{input}") };
        self.tools.call(&foreign, input).await
    }

    pub(crate) async fn says(&self, tool: &str) -> String {
        let ExternalToolResult { text, failed, .. } = self.call(tool, json!({})).await;
        assert!(!failed, "{text}");
        text
    }

    pub(crate) async fn fails(&self, tool: &str) -> String {
        let ExternalToolResult { text, failed, .. } = self.call(tool, json!({})).await;
        assert!(failed, "{text}");
        text
    }

    /// What was left of cells.
    pub(crate) fn left(&self) -> Vec<PathBuf> {
        let cells = self.folder.path().join(".choir/cells");
        std::fs::read_dir(cells).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    }
}

fn open(folder: &TempDir, settings: &str) -> McpTools {
    isolation::set_launcher(env!("CARGO_BIN_EXE_sandbox"));
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures");
    let fixtures = std::fs::canonicalize(fixtures).unwrap();
    let table: toml::Table = settings.replace("{fixtures}", fixtures.to_str().unwrap()).parse().unwrap();
    let agent_services = AgentServices::new(None).unwrap().with_mcp(table["mcp"].as_table()).unwrap();
    let agent_services = AgentServices { keys: Arc::new(|_| Arc::new(OneKey)), ..agent_services };
    let paths = ComputerPaths::at(folder.path());
    let cells = CellSettings::default();
    let backend = cells.backend(&paths.state);
    let folders = paths.state.join("cells");
    let launch = McpServerCells::new(cells, backend, &paths, "ada".into(), folders, &agent_services.rules);
    agent_services.mcp_tools_with(&paths, &UserId::parse("ada").unwrap(), Arc::new(launch))
}
