//! Dependencies point one way: isa, sys <- engine <- lancet <- cli.
//!
//! Each crate of the workspace has a rank, and may depend only on crates of lower rank. Development dependencies are
//! free: a test may use the crate above. A crate that is not in the table breaks the rule, so the table stays whole.

use toml::{Table, Value};

use super::Findings;

/// Folder under the repository, package name, rank.
const CRATES: &[(&str, &str, u8)] = &[
    ("crates/isa", "lancet-isa", 0),
    ("crates/sys", "lancet-sys", 0),
    ("crates/blackfin-sim", "lancet-blackfin-sim", 1),
    ("crates/engine", "lancet-engine", 1),
    ("crates/lancet", "lancet", 2),
    ("crates/cli", "lancet-cli", 3),
    ("fuzz", "lancet-fuzz", 4),
    ("xtask", "xtask", 4),
];

pub(super) fn check(path: &str, text: &str, findings: &mut Findings) {
    let Ok(manifest) = text.parse::<Table>() else {
        findings.add(1, "not valid TOML");
        return;
    };
    let Some(name) = manifest.get("package").and_then(|p| p.get("name")).and_then(Value::as_str) else {
        return; // the workspace's own manifest
    };
    let folder = path.strip_suffix("/Cargo.toml").unwrap_or(path);
    let Some((_, _, rank)) = CRATES.iter().find(|(known, known_name, _)| *known == folder && *known_name == name)
    else {
        findings.add(1, format!("crate {name} in {folder} has no place in the order of dependencies"));
        return;
    };
    for dependency in dependencies(&manifest) {
        if CRATES.iter().any(|(_, known, its_rank)| *known == dependency && its_rank >= rank) {
            let line = 1 + text.lines().position(|line| names(line, &dependency)).unwrap_or(0);
            findings.add(line, format!("{name} must not depend on {dependency}: dependencies point one way"));
        }
    }
}

/// The packages that the crate is built from, for any target.
fn dependencies(manifest: &Table) -> Vec<String> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let per_target = targets.into_iter().flat_map(|t| t.values()).filter_map(Value::as_table);
    let mut names = Vec::new();
    for table in std::iter::once(manifest).chain(per_target) {
        for kind in ["dependencies", "build-dependencies"] {
            for (key, value) in table.get(kind).and_then(Value::as_table).into_iter().flatten() {
                names.push(value.get("package").and_then(Value::as_str).unwrap_or(key).to_string());
            }
        }
    }
    names
}

/// Whether the line is the entry of the dependency, and not of one whose name only starts the same.
fn names(line: &str, dependency: &str) -> bool {
    line.strip_prefix(dependency).is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
}

#[cfg(test)]
mod tests {
    use super::super::rules_broken;

    fn manifest(name: &str, dependencies: &str) -> String {
        format!("[package]\nname = \"{name}\"\n{dependencies}\n")
    }

    #[test]
    fn dependencies_point_one_way() {
        let up = manifest("lancet-engine", "[dependencies]\nlancet-isa.workspace = true\nlancet.workspace = true");
        let rule = "5: lancet-engine must not depend on lancet: dependencies point one way";
        assert_eq!(rules_broken("crates/engine/Cargo.toml", &up), [rule]);

        let down = manifest("lancet-engine", "[dependencies]\nlancet-isa.workspace = true\ngimli.workspace = true");
        assert_eq!(rules_broken("crates/engine/Cargo.toml", &down), [""; 0]);

        let sideways = manifest("lancet-isa", "[target.'cfg(unix)'.dependencies]\nlancet-sys.workspace = true");
        assert_eq!(rules_broken("crates/isa/Cargo.toml", &sideways).len(), 1);

        let renamed = manifest("lancet-isa", "[dependencies]\nup = { package = \"lancet\", path = \"../lancet\" }");
        assert_eq!(rules_broken("crates/isa/Cargo.toml", &renamed).len(), 1);

        let tests_only = manifest("lancet-isa", "[dev-dependencies]\nlancet-engine.workspace = true");
        assert_eq!(rules_broken("crates/isa/Cargo.toml", &tests_only), [""; 0]);
    }

    #[test]
    fn unknown_crates_and_bad_manifests_are_found() {
        let rule = "1: crate extra in crates/extra has no place in the order of dependencies";
        assert_eq!(rules_broken("crates/extra/Cargo.toml", &manifest("extra", "")), [rule]);
        assert_eq!(rules_broken("crates/isa/Cargo.toml", "[package"), ["1: not valid TOML"]);
        assert_eq!(rules_broken("Cargo.toml", "[workspace]\n"), [""; 0]);
    }
}
