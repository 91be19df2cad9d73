use std::collections::HashSet;

use super::*;

/// The staging modules' minor and patch are the root module's, one major below.
fn staging_version(recipe: &Recipe) -> String {
    recipe.version.replace("v1.", "v0.")
}

#[test]
fn every_set_is_listed_once_and_found_by_name() {
    let names: HashSet<_> = Set::ALL.iter().map(|set| set.name()).collect();
    assert_eq!(names.len(), Set::ALL.len());
    for set in Set::ALL {
        assert_eq!(set.name().parse::<Set>().unwrap(), *set);
        assert_eq!(set.to_string(), set.name());
    }
    let text = "kubernetes".parse::<Set>().unwrap_err().to_string();
    assert!(text.contains("kubernetes-1.34"), "{text}");
}

#[test]
fn versions_are_those_of_the_pins() {
    for recipe in Set::ALL.iter().map(|set| set.recipe()) {
        let name = recipe.name;
        assert_eq!(recipe.required_version(recipe.module), Some(recipe.version), "{name}");
        assert!(recipe.go_mod.starts_with(&format!("module hangar.invalid/tools/{name}\n")), "{name}");
        assert!(recipe.minimum_go().starts_with("1."), "{name}");
        for files in recipe.files {
            let version = recipe.required_version(files.module);
            assert!(
                version.is_some_and(|version| recipe.pinned_sum(files.module, version).is_some()),
                "{name}"
            );
        }
        let sum = recipe.pinned_sum(recipe.module, recipe.version);
        assert!(sum.is_some_and(|sum| sum.starts_with("h1:")), "{name}");
    }
}

#[test]
fn tool_lines_are_the_programs() {
    for recipe in Set::ALL.iter().map(|set| set.recipe()) {
        let tools: HashSet<_> = pins::tools(recipe.go_mod).into_iter().collect();
        let packages: HashSet<_> = recipe.programs.iter().map(|program| program.package).collect();
        assert_eq!(tools, packages, "{}", recipe.name);
    }
}

#[test]
fn one_build_gives_every_program_its_own_file() {
    for recipe in Set::ALL.iter().map(|set| set.recipe()) {
        let built: HashSet<_> = recipe.programs.iter().map(Program::built_name).collect();
        assert_eq!(built.len(), recipe.programs.len(), "{}", recipe.name);
        // A renamed program must not overwrite one that keeps its name.
        for program in recipe.programs.iter().filter(|program| program.name != program.built_name()) {
            assert!(!built.contains(program.name), "{}: {}", recipe.name, program.name);
        }
    }
    assert_eq!(Set::Etcd36.recipe().programs[0].built_name(), "server");
}

#[test]
fn kubernetes_staging_modules_are_all_of_one_version() {
    let kubernetes = Set::ALL.iter().filter(|set| set.name().starts_with("kubernetes-"));
    for recipe in kubernetes.map(|set| set.recipe()) {
        let expected = staging_version(recipe);
        let replaced: Vec<_> = pins::replacements(recipe.go_mod).collect();
        assert!(replaced.len() >= 28, "{}: {}", recipe.name, replaced.len());
        for (module, replacement, version) in replaced {
            assert_eq!((replacement, version), (module, expected.as_str()), "{}", recipe.name);
        }
    }
}

/// What they test is there beside them.
#[test]
fn conformance_tests_are_of_the_version_that_they_test() {
    let (tests, tested) = (Set::Conformance134.recipe(), Set::Kubernetes134.recipe());
    assert_eq!(tests.version, tested.version);
    let replaced: HashSet<_> = pins::replacements(tests.go_mod).collect();
    assert!(pins::replacements(tested.go_mod).all(|one| replaced.contains(&one)), "{replaced:?}");
}

#[test]
fn etcd_programs_are_all_of_one_version() {
    for set in [Set::Etcd36, Set::Etcd37] {
        let recipe = set.recipe();
        for program in recipe.programs {
            assert_eq!(recipe.required_version(program.package), Some(recipe.version), "{set}");
        }
    }
}

#[test]
fn stamps_carry_the_version() {
    let flags = Set::Kubernetes134.recipe().linker_flags();
    for stamp in ["version.gitVersion=v1.34.10", "version.gitMajor=1", "version.gitMinor=34"] {
        assert_eq!(flags.matches(stamp).count(), 2, "{stamp} in {flags}");
    }
    assert!(!flags.contains('{'), "{flags}");
    assert!(Set::Flannel.recipe().linker_flags().ends_with("-extldflags \"-static\""));
}

/// Its `main` would be another program.
const TESTS_OF_ETCD: [Program; 1] =
    [Program { name: "etcd", package: "go.etcd.io/etcd/server/v3", content: Content::Tests }];

#[test]
fn the_fingerprint_follows_everything_that_decides_the_content() {
    let recipe = *Set::Etcd36.recipe();
    let original = recipe.fingerprint();
    assert_eq!(original.len(), 12);
    assert_eq!(original, recipe.fingerprint());
    let changed = [
        Recipe { go_mod: "module other", ..recipe },
        Recipe { go_sum: "", ..recipe },
        Recipe { version: "v3.6.17", ..recipe },
        Recipe { programs: &[], ..recipe },
        Recipe { programs: &TESTS_OF_ETCD, ..recipe },
        Recipe { stamps: &["main.version=1"], ..recipe },
        Recipe { tags: &["netgo"], ..recipe },
        Recipe { linkage: Linkage::C, ..recipe },
    ];
    let fingerprints: HashSet<_> =
        changed.iter().map(Recipe::fingerprint).chain([original.clone()]).collect();
    assert_eq!(fingerprints.len(), changed.len() + 1);
    // What a build needs of the disk does not change what it yields.
    assert_eq!(Recipe { peak_mebibytes: 1, ..recipe }.fingerprint(), original);
}

#[test]
fn pins_are_read_in_blocks_and_single_lines() {
    let go_mod = "module x\n\ngo 1.24.0\n\nrequire a.example/one v1.2.3\n\nrequire (\n\ta.example/two v0.1.0 // indirect\n)\n\
        replace a.example/three => b.example/three v3.0.0\n";
    assert_eq!(pins::go_line(go_mod), "1.24.0");
    assert_eq!(pins::required_version(go_mod, "a.example/one"), Some("v1.2.3"));
    assert_eq!(pins::required_version(go_mod, "a.example/two"), Some("v0.1.0"));
    assert_eq!(pins::required_version(go_mod, "a.example/three"), None);
    let go_sum = "a.example/one v1.2.3/go.mod h1:wrong=\na.example/one v1.2.3 h1:right=\n";
    assert_eq!(pins::sum(go_sum, "a.example/one", "v1.2.3"), Some("h1:right="));
}
