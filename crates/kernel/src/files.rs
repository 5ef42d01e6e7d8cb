//! The files slice: the node at every path, and the number of nodes below every folder.
//!
//! The counts are derived from the nodes and no part of the hash; they answer "is this a folder?" without a scan.

use hashbrown::HashMap;
use shared_types::FilePath;
use shared_types::payload::file::FileNode;

use crate::slice::Slice;

/// All nodes of the workspace.
#[derive(Debug, Clone, Default)]
pub struct Files {
    pub(crate) nodes: Slice<FilePath, FileNode>,
    below: HashMap<String, u32>,
}

impl Files {
    pub fn get(&self, path: &FilePath) -> Option<&FileNode> {
        self.nodes.get(path)
    }

    /// The same for a path as text.
    pub(crate) fn get_at(&self, path: &str) -> Option<&FileNode> {
        self.nodes.get(path)
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&FilePath, &FileNode)> {
        self.nodes.iter()
    }

    pub fn sorted(&self) -> Vec<(&FilePath, &FileNode)> {
        self.nodes.sorted()
    }

    /// The number of nodes below a path, at any depth.
    pub fn count_below(&self, path: &FilePath) -> u32 {
        self.below.get(path.as_str()).copied().unwrap_or_default()
    }

    /// The path itself and everything below it, sorted. It scans all nodes, so it is for actions on folders only.
    pub fn within(&self, folder: &FilePath) -> Vec<(&FilePath, &FileNode)> {
        if self.count_below(folder) == 0 {
            return self.nodes.entry(folder).into_iter().collect();
        }
        let mut found: Vec<_> = self.nodes.iter().filter(|(path, _)| path.is_within(folder)).collect();
        found.sort_unstable_by_key(|(path, _)| *path);
        found
    }

    pub(crate) fn set(&mut self, path: &FilePath, node: FileNode) {
        if self.nodes.set(path, node).is_none() {
            self.count(path, 1);
        }
    }

    pub(crate) fn remove(&mut self, path: &FilePath) {
        if self.nodes.remove(path).is_some() {
            self.count(path, -1);
        }
    }

    fn count(&mut self, path: &FilePath, by: i32) {
        let text = path.as_str();
        for (end, _) in text.match_indices('/') {
            let count = self.below.entry_ref(&text[..end]).or_insert(0);
            *count = count.saturating_add_signed(by);
            if *count == 0 {
                self.below.remove(&text[..end]);
            }
        }
    }

    pub(crate) fn from_nodes(nodes: Slice<FilePath, FileNode>) -> Self {
        let mut files = Self { nodes: Slice::default(), below: HashMap::new() };
        for (path, _) in nodes.iter() {
            files.count(path, 1);
        }
        files.nodes = nodes;
        files
    }
}
