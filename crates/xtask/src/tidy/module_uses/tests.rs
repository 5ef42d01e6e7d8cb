//! Every way in which one module names another, and what only looks like one.

use super::*;

/// The uses of a crate with modules `x`, `y` and `z`, whose `x` is this text at this path.
fn uses_of(inside: &str, text: &str) -> Vec<(usize, String)> {
    let file = |path: &str, text: &str| TextFile { path: path.into(), text: text.into() };
    let root = file(
        "lib.rs",
        "mod x;\nmod y;\nmod z;\npub use y::{inner::{Deep, Other as Renamed}, Y};\nuse z::Z;\n",
    );
    let (this, y, z) = (file(inside, text), file("y.rs", ""), file("z.rs", ""));
    let sources = [("lib.rs", &root), (inside, &this), ("y.rs", &y), ("z.rs", &z)];
    of_crate(&sources).into_iter().map(|used| (used.line, used.to)).collect()
}

fn at(line: usize, module: &str) -> (usize, String) {
    (line, module.to_owned())
}

#[test]
fn a_path_from_the_root_is_a_use_anywhere() {
    assert_eq!(
        uses_of("x.rs", "use crate::y::Y;\nfn f() -> crate::z::Z { g() }\n"),
        [at(1, "y"), at(2, "z")]
    );
    assert_eq!(uses_of("x/a.rs", "use crate::{\n    y::{A, z},\n    z,\n};\n"), [at(2, "y"), at(3, "z")]);
}

#[test]
fn enough_supers_reach_the_root() {
    assert_eq!(uses_of("x.rs", "use super::y::Y;\n"), [at(1, "y")]);
    assert_eq!(uses_of("x/a.rs", "use super::y::Y;\nuse super::super::z;\n"), [at(2, "z")]);
    assert_eq!(
        uses_of("x.rs", "mod part {\n    use super::y;\n    use super::super::y;\n}\nuse super::z;\n"),
        [at(3, "y"), at(5, "z")]
    );
}

#[test]
fn an_item_that_the_root_re_exports_is_a_use_of_its_module() {
    assert_eq!(
        uses_of("x.rs", "use crate::Y;\nuse crate::{Deep, Renamed};\nuse crate::Z;\n"),
        [at(1, "y"), at(2, "y"), at(2, "y"), at(3, "z")]
    );
    assert_eq!(uses_of("x.rs", "use crate::Unknown;\nuse crate::inner;\n"), []);
}

#[test]
fn comments_strings_other_crates_and_tests_are_no_uses() {
    let text = "// crate::y\n/// [`crate::y`]\nlet a = \"crate::y\";\nuse other::y::Y;\npub(crate) fn y() {}\n\
                #[cfg(test)]\nmod tests {\n    use crate::y;\n}\n#[cfg(test)]\nmod more;\n#[test]\nfn t() { crate::y::f() }\n";
    assert_eq!(uses_of("x.rs", text), []);
    assert_eq!(uses_of("x.rs", "#[cfg(not(test))]\nuse crate::y;\n"), [at(2, "y")]);
}
