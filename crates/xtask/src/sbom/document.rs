//! The document itself: pure, `CycloneDX` 1.6.

use serde_json::{Value, json};

use super::{
    PACKAGE, TARGET,
    sources::{Name, Part, Sources},
};

/// The bill of materials of what was read.
pub(super) fn of(sources: &Sources) -> Value {
    let main = sources.parts.values().find(|part| part.name == PACKAGE);
    let others = sources.parts.values().filter(|part| part.name != PACKAGE);
    let components = others.map(component).chain(sources.parts.values().filter_map(bundled));
    let dependencies = sources.parts.values().map(dependency);
    let leaves = sources.parts.values().filter_map(|part| {
        part.bundled.as_ref().map(|(name, version)| json!({ "ref": bundled_reference(name, version) }))
    });
    let mut metadata = json!({
        "component": main.map(|main| {
            let mut component = component(main);
            component["type"] = "application".into();
            component
        }),
        "properties": [
            { "name": "leasehold:target", "value": TARGET },
            { "name": "leasehold:rustc", "value": sources.rustc },
        ],
        "tools": { "components": [{ "type": "application", "name": "cargo xtask sbom" }] },
    });
    if let Some(at) = &sources.at {
        metadata["timestamp"] = at.as_str().into();
    }
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": metadata,
        "components": components.collect::<Vec<_>>(),
        "dependencies": dependencies.chain(leaves).collect::<Vec<_>>(),
    })
}

fn component(part: &Part) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(&(part.name.clone(), part.version.clone()), part.sha256.is_some()),
        "name": part.name,
        "version": part.version,
        "scope": if part.is_linked { "required" } else { "excluded" },
    });
    if let Some(license) = &part.license {
        // The registry still has expressions of before SPDX.
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    if let Some(sha256) = &part.sha256 {
        component["purl"] = purl(&part.name, &part.version).into();
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sha256 }]);
    }
    if let Some(repository) = &part.repository {
        component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    component
}

fn bundled(part: &Part) -> Option<Value> {
    let (name, version) = part.bundled.as_ref()?;
    Some(json!({
        "type": "library",
        "bom-ref": bundled_reference(name, version),
        "name": name,
        "version": version,
        "scope": if part.is_linked { "required" } else { "excluded" },
        "purl": bundled_reference(name, version),
        "description": format!("built from the sources that {} carries", part.name),
    }))
}

fn dependency(part: &Part) -> Value {
    let own = reference(&(part.name.clone(), part.version.clone()), part.sha256.is_some());
    let needs = part.needs.iter().map(|need| {
        // A crate of this workspace is never one of the registry's.
        reference(need, !need.0.starts_with(PACKAGE))
    });
    let bundled = part.bundled.iter().map(|(name, version)| bundled_reference(name, version));
    json!({ "ref": own, "dependsOn": needs.chain(bundled).collect::<Vec<_>>() })
}

/// What a component is called in the document: its package URL, or for a crate of this workspace, which is in no registry, its name.
fn reference((name, version): &Name, is_published: bool) -> String {
    if is_published { purl(name, version) } else { format!("{name}@{version}") }
}

fn purl(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

fn bundled_reference(name: &str, version: &str) -> String {
    format!("pkg:generic/{name}@{version}")
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn part(name: &str, needs: &[(&str, &str)]) -> (Name, Part) {
        let version = "1.0.0".to_owned();
        let owned = |(name, version): &(&str, &str)| ((*name).to_owned(), (*version).to_owned());
        let part = Part {
            name: name.to_owned(),
            version: version.clone(),
            license: Some("MIT/Apache-2.0".to_owned()),
            repository: None,
            sha256: (!name.starts_with(PACKAGE)).then(|| "ab".repeat(32)),
            is_linked: name != "macro",
            bundled: (name == "sys").then(|| ("sqlite", "3.51.0".to_owned())),
            needs: needs.iter().map(owned).collect::<BTreeSet<_>>(),
        };
        ((name.to_owned(), version), part)
    }

    fn sources() -> Sources {
        let parts = BTreeMap::from([
            part(PACKAGE, &[("leasehold-types", "1.0.0"), ("sys", "1.0.0")]),
            part("leasehold-types", &[("macro", "1.0.0")]),
            part("macro", &[]),
            part("sys", &[]),
        ]);
        Sources { parts, at: Some("2026-01-01T00:00:00Z".to_owned()), rustc: "rustc 1.89.0".to_owned() }
    }

    #[test]
    fn what_is_linked_is_told_from_what_only_took_part() {
        let bill = of(&sources());
        let scope = |name: &str| {
            let components = bill["components"].as_array().unwrap();
            components.iter().find(|component| component["name"] == name).unwrap()["scope"].clone()
        };
        assert_eq!(scope("sys"), "required");
        assert_eq!(scope("sqlite"), "required");
        assert_eq!(scope("macro"), "excluded");
        assert_eq!(bill["metadata"]["component"]["type"], "application");
    }

    #[test]
    fn whatever_is_referred_to_is_there() {
        let bill = of(&sources());
        let components = bill["components"].as_array().unwrap().iter();
        let there: BTreeSet<_> = components
            .chain([&bill["metadata"]["component"]])
            .map(|one| one["bom-ref"].clone().to_string())
            .collect();
        let dependencies = bill["dependencies"].as_array().unwrap();
        assert_eq!(dependencies.len(), there.len());
        for dependency in dependencies {
            let needs = dependency["dependsOn"].as_array().into_iter().flatten();
            for reference in needs.chain([&dependency["ref"]]) {
                assert!(there.contains(&reference.to_string()), "{reference}");
            }
        }
    }

    #[test]
    fn a_crate_of_the_registry_has_its_digest_and_ours_has_no_address() {
        let bill = of(&sources());
        let components = bill["components"].as_array().unwrap();
        let find = |name: &str| components.iter().find(|component| component["name"] == name).unwrap();
        assert_eq!(find("sys")["purl"], "pkg:cargo/sys@1.0.0");
        assert_eq!(find("sys")["hashes"][0]["content"], "ab".repeat(32));
        assert_eq!(find("sys")["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(find("leasehold-types").get("purl"), None);
        assert_eq!(purl("zstd-sys", "2.1.3+zstd.1.5.7"), "pkg:cargo/zstd-sys@2.1.3%2Bzstd.1.5.7");
    }
}
