//! The document about no custom resource in particular → the same about one: its names take their places.

use std::collections::BTreeMap;

use portolan_builtin::published::TEMPLATE;

use super::builtin::{DocumentParts, parts_of};

/// What the real server says about any custom resource.
pub(super) struct Template {
    parts: DocumentParts,
}

/// The names of one custom resource in one version.
#[derive(Debug)]
pub(super) struct TemplateNames {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) plural: String,
    pub(super) kind: String,
    pub(super) list_kind: String,
    pub(super) namespaced: bool,
}

/// The names that the template uses.
struct Placeholders {
    plural: &'static str,
    kind: &'static str,
    list_kind: &'static str,
}

const NAMESPACED: Placeholders =
    Placeholders { plural: "namespacedthings", kind: "NamespacedThing", list_kind: "ThingsInNamespaces" };
const CLUSTER: Placeholders =
    Placeholders { plural: "clusterthings", kind: "ClusterThing", list_kind: "ThingsInCluster" };

impl Template {
    pub(super) fn read() -> Self {
        Self { parts: parts_of(TEMPLATE).expect("the generated data has the template") }
    }

    /// The paths of a resource with these subresources.
    pub(super) fn paths(&self, names: &TemplateNames, subresources: &[&str]) -> BTreeMap<String, String> {
        let placeholders = names.placeholders();
        let collection = format!("/{}", placeholders.plural);
        let is_served = |path: &&String| match path.split_once(&collection) {
            Some((_, "" | "/{name}")) => true,
            Some((_, below)) => below.strip_prefix("/{name}/").is_some_and(|sub| subresources.contains(&sub)),
            None => false,
        };
        let replacements = names.replacements();
        let fill = |text: &str| replace(text, &replacements);
        let paths = self.parts.paths.keys().filter(is_served);
        paths.map(|path| (fill(path), fill(&self.parts.paths[path]))).collect()
    }

    /// The schema of its objects, without any field of their own.
    pub(super) fn object(&self, names: &TemplateNames) -> String {
        self.schema(names, names.placeholders().kind)
    }

    /// The schema of its lists.
    pub(super) fn list(&self, names: &TemplateNames) -> String {
        self.schema(names, names.placeholders().list_kind)
    }

    fn schema(&self, names: &TemplateNames, placeholder: &str) -> String {
        let name = format!("template.group.version1.{placeholder}");
        replace(&self.parts.schemas[&name], &names.replacements())
    }

    /// The schemas that custom resources with these subresources reach.
    pub(super) fn shared(&self, subresources: &[&str]) -> impl Iterator<Item = (&String, &String)> {
        let has_scale = subresources.contains(&"scale");
        let is_shared = move |name: &str| {
            name.starts_with("io.k8s.apimachinery.") || (has_scale && name.starts_with("io.k8s.api.autoscaling."))
        };
        self.parts.schemas.iter().filter(move |(name, _)| is_shared(name))
    }
}

impl TemplateNames {
    fn placeholders(&self) -> Placeholders {
        if self.namespaced { NAMESPACED } else { CLUSTER }
    }

    /// `com.example.v1.Widget`.
    pub(super) fn model(&self, kind: &str) -> String {
        format!("{}.{kind}", self.package())
    }

    fn package(&self) -> String {
        let reversed: Vec<&str> = self.group.rsplit('.').collect();
        format!("{}.{}", reversed.join("."), self.version)
    }

    /// What stands in the template, and what stands for it here.
    fn replacements(&self) -> Vec<(String, String)> {
        let placeholders = self.placeholders();
        let group = self.group.strip_suffix(".k8s.io").unwrap_or(&self.group);
        let pair = |from: &str, to: String| (from.to_owned(), to);
        vec![
            pair("template.group.version1", self.package()),
            pair("group.template", self.group.clone()),
            pair(
                "GroupTemplateVersion1",
                format!("{}{}", camel(group, Start::Upper), camel(&self.version, Start::Upper)),
            ),
            pair(
                "groupTemplate_version1",
                format!("{}_{}", camel(group, Start::AsIs), camel(&self.version, Start::AsIs)),
            ),
            pair("version1", self.version.clone()),
            (format!(" a {}", placeholders.kind), format!("{}{}", article(&self.kind), self.kind)),
            pair(placeholders.kind, self.kind.clone()),
            pair(placeholders.list_kind, self.list_kind.clone()),
            pair(placeholders.plural, self.plural.clone()),
        ]
    }
}

/// How the first letter is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    Upper,
    AsIs,
}

/// Letters and digits, each part after something else in upper case.
fn camel(text: &str, start: Start) -> String {
    let mut upper = start == Start::Upper;
    let mut out = String::new();
    for (index, letter) in text.char_indices() {
        if letter.is_alphabetic() || letter == '_' || (index != 0 && letter.is_numeric()) {
            if upper {
                out.extend(letter.to_uppercase());
            } else {
                out.push(letter);
            }
            upper = false;
        } else {
            upper = true;
        }
    }
    out
}

/// The article before a kind, with the blanks around it; plurals have none.
fn article(kind: &str) -> &'static str {
    if kind.ends_with('s') && !kind.ends_with("ss") {
        return " ";
    }
    match kind.chars().next().map(|letter| letter.to_ascii_lowercase()) {
        Some('a' | 'e' | 'i' | 'o' | 'u') => " an ",
        _ => " a ",
    }
}

/// Replaces all at once, so that nothing is found in what was put in. Of two that start at one place the longer wins.
fn replace(text: &str, replacements: &[(String, String)]) -> String {
    let mut next: Vec<Option<usize>> = replacements.iter().map(|(from, _)| text.find(from)).collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    loop {
        let found = next.iter().enumerate().filter_map(|(index, place)| place.map(|place| (place, index)));
        let first = found.min_by_key(|(place, index)| (*place, usize::MAX - replacements[*index].0.len()));
        let Some((place, index)) = first else { break };
        let (from, to) = &replacements[index];
        out.push_str(&text[at..place]);
        out.push_str(to);
        at = place + from.len();
        for (place, (from, _)) in next.iter_mut().zip(replacements) {
            if place.is_some_and(|place| place < at) {
                *place = text[at..].find(from).map(|found| found + at);
            }
        }
    }
    out.push_str(&text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(namespaced: bool) -> TemplateNames {
        let own = str::to_owned;
        TemplateNames {
            group: own("fruit.my-org.example.com"),
            version: own("v1"),
            plural: own("apples"),
            kind: own("Apple"),
            list_kind: own("AppleList"),
            namespaced,
        }
    }

    #[test]
    fn names_take_their_places_in_every_form() {
        let paths = Template::read().paths(&names(true), &["status"]);

        let one = "/apis/fruit.my-org.example.com/v1/namespaces/{namespace}/apples/{name}";
        let item = &paths[one];
        assert!(item.contains("\"deleteFruitMyOrgExampleComV1NamespacedApple\""), "{item}");
        assert!(item.contains("\"fruitMyOrgExampleCom_v1\""));
        assert!(item.contains("\"delete an Apple\""));
        assert!(item.contains("#/components/schemas/com.example.my-org.fruit.v1.Apple\""));
        assert!(paths.contains_key(&format!("{one}/status")));
        assert!(!paths.contains_key(&format!("{one}/scale")));
        assert!(paths.contains_key("/apis/fruit.my-org.example.com/v1/apples"));
    }

    #[test]
    fn nothing_of_the_template_is_left() {
        let template = Template::read();

        for namespaced in [true, false] {
            let names = names(namespaced);
            let mut texts: Vec<String> = template.paths(&names, &["status", "scale"]).into_values().collect();
            texts.extend([template.object(&names), template.list(&names)]);
            for text in texts {
                let left = ["group.template", "roupTemplate", "version1", "Thing", "edthings", "clusterthings"];
                assert!(!left.iter().any(|name| text.contains(name)), "{text}");
            }
        }
    }

    #[test]
    fn what_was_put_in_is_not_replaced_again() {
        let pairs =
            [("a".to_owned(), "b".to_owned()), ("b".to_owned(), "a".to_owned()), ("ab".to_owned(), "x".to_owned())];

        assert_eq!(replace("a b ab ba", &pairs), "b a x ab");
    }
}
