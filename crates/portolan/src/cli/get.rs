//! `portolan get`: objects of a kind as the server's own table, or whole.

use futures::StreamExt;
use serde_json::Value;

use super::{NamespaceArgs, print};
use crate::applying::hide_managed_fields;
use crate::failure::{Failure, Outcome};
use crate::kinds::{Kinds, ServedKind, segment};
use crate::output::{self, OutputFormat, Wrap};
use crate::server::{ConnectArgs, Server, ServerRequest};
use crate::table::{Layout, Printer};

const AS_TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
/// Objects asked for at once, so that a large collection neither stalls the server nor fills memory at once.
const PAGE: usize = 500;

/// Arguments of `portolan get`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  portolan get pods -A\n  portolan get deploy web -o yaml\n  portolan get configmaps,secrets \
    -l app=web\n  portolan get crd -w"
)]
pub(crate) struct Args {
    /// Kind: plural, singular, short name or category; KIND.GROUP to be exact; several with commas; or KIND/NAME
    #[arg(value_name = "KIND")]
    kinds: String,

    /// Names of objects; all of the kind where none is given
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    namespace: NamespaceArgs,

    /// All namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,

    /// Only objects with these labels: a=b, a!=b, `a in (b,c)`, a, !a; several with commas
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,

    /// Only objects with these field values: metadata.name=a
    #[arg(long, value_name = "SELECTOR")]
    field_selector: Option<String>,

    /// How to show them
    #[arg(short, long, value_enum, default_value = "table")]
    output: OutputFormat,

    /// Go on showing changes until Ctrl-C
    #[arg(short, long)]
    watch: bool,

    /// Show who owns which field, too (yaml and json)
    #[arg(long)]
    show_managed_fields: bool,

    #[command(flatten)]
    connect: ConnectArgs,
}

/// Shows what was asked for.
pub(crate) async fn run(args: Args) -> Outcome {
    let (kinds_text, names) = split_names(&args)?;
    let server = args.connect.server().await?;
    let kinds = Kinds::discover(&server).await?;
    let mut asked = Vec::new();
    for name in kinds_text.split(',').filter(|name| !name.is_empty()) {
        asked.extend(kinds.called_or_in_category(name)?);
    }
    if args.watch && (asked.len() != 1 || names.len() > 1) {
        return Err(Failure::new("-w follows one kind or one object").next("name one KIND and at most one NAME"));
    }
    let namespace = namespace_of(&args, &server);
    let several = asked.len() > 1;
    for kind in asked {
        let get = Get { server: &server, kind, args: &args, namespace: namespace.as_deref(), several };
        if names.is_empty() {
            get.collection(None).await?;
        } else {
            get.named(&names).await?;
        }
    }
    Ok(())
}

/// `KIND NAME…` or `KIND/NAME`.
fn split_names(args: &Args) -> Outcome<(String, Vec<String>)> {
    let Some((kind, name)) = args.kinds.split_once('/') else {
        return Ok((args.kinds.clone(), args.names.clone()));
    };
    if !args.names.is_empty() {
        return Err(Failure::new("KIND/NAME cannot be followed by more names").next("write KIND NAME1 NAME2"));
    }
    Ok((kind.to_owned(), vec![name.to_owned()]))
}

fn namespace_of(args: &Args, server: &Server) -> Option<String> {
    let own = || args.namespace.namespace.clone().unwrap_or_else(|| server.default_namespace().to_owned());
    (!args.all_namespaces).then(own)
}

struct Get<'a> {
    server: &'a Server,
    kind: &'a ServedKind,
    args: &'a Args,
    namespace: Option<&'a str>,
    several: bool,
}

impl Get<'_> {
    async fn named(&self, names: &[String]) -> Outcome {
        let Some(namespace) = self.namespace else {
            return Err(Failure::new("an object cannot be asked for by name in all namespaces")
                .next(format!("give its namespace with -n, or use -A --field-selector metadata.name={}", names[0])));
        };
        if self.args.watch {
            return self.collection(names.first()).await;
        }
        let mut printer = Printer::new(self.layout());
        let mut objects = Vec::new();
        for name in names {
            let path = self.kind.object_path(namespace, name);
            let answer = self.server.call(ServerRequest { accept: self.accept(), ..ServerRequest::get(&path) }).await?;
            match self.args.output {
                OutputFormat::Table | OutputFormat::Wide => print_table(&mut printer, &answer.body),
                OutputFormat::Yaml | OutputFormat::Json | OutputFormat::Name => objects.push(answer.body),
            }
        }
        self.print_objects(objects, Wrap::Single)
    }

    /// A whole collection, or with `-w` the part of it that is one object.
    async fn collection(&self, only: Option<&String>) -> Outcome {
        let mut printer = Printer::new(self.layout());
        let mut objects = Vec::new();
        let mut rows = 0;
        let mut page = self.page(only, None).await?;
        loop {
            match self.args.output {
                OutputFormat::Table | OutputFormat::Wide => {
                    rows += page["rows"].as_array().map_or(0, Vec::len);
                    print_table(&mut printer, &page);
                }
                OutputFormat::Yaml | OutputFormat::Json | OutputFormat::Name => {
                    objects.extend(self.items_of(&mut page));
                }
            }
            match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
                Some(token) => page = self.page(only, Some(token)).await?,
                None => break,
            }
        }
        let nothing = rows == 0 && objects.is_empty();
        if nothing && self.is_table() && !self.args.watch {
            self.say_nothing_found();
        } else if !(nothing && self.args.watch) {
            self.print_objects(objects, Wrap::List)?;
        }
        if self.args.watch { self.follow(only, &page, printer).await } else { Ok(()) }
    }

    async fn page(&self, only: Option<&String>, token: Option<&str>) -> Outcome<Value> {
        let mut query = self.query(only);
        query.push(format!("limit={PAGE}"));
        query.extend(token.map(|token| format!("continue={}", segment(token))));
        let path = format!("{}?{}", self.kind.collection_path(self.namespace), query.join("&"));
        Ok(self.server.call(ServerRequest { accept: self.accept(), ..ServerRequest::get(&path) }).await?.body)
    }

    fn query(&self, only: Option<&String>) -> Vec<String> {
        let labels = self.args.selector.as_ref().map(|text| format!("labelSelector={}", segment(text)));
        let name = only.map(|name| format!("metadata.name={name}"));
        let fields: Vec<String> = name.into_iter().chain(self.args.field_selector.clone()).collect();
        let fields = (!fields.is_empty()).then(|| format!("fieldSelector={}", segment(&fields.join(","))));
        labels.into_iter().chain(fields).collect()
    }

    /// Shows each change after `list` until the server or the user ends it.
    async fn follow(&self, only: Option<&String>, list: &Value, mut printer: Printer) -> Outcome {
        let mut query = self.query(only);
        query.push("watch=true".to_owned());
        let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        query.push(format!("resourceVersion={}", segment(version)));
        let path = format!("{}?{}", self.kind.collection_path(self.namespace), query.join("&"));
        let mut events = self.server.watch(&path, self.accept()).await?;
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                _ = tokio::signal::ctrl_c() => return Ok(()),
            };
            let Some(event) = event.transpose()? else { return Ok(()) };
            if event["type"] == "ERROR" {
                return Err(Failure::new(event["object"]["message"].as_str().unwrap_or("the watch ended").to_owned())
                    .next("start the command again"));
            }
            if event["type"] != "BOOKMARK" {
                self.print_event(&mut printer, &event["object"])?;
            }
        }
    }

    fn print_event(&self, printer: &mut Printer, object: &Value) -> Outcome {
        match self.args.output {
            OutputFormat::Table | OutputFormat::Wide => {
                print_table(printer, object);
                Ok(())
            }
            OutputFormat::Yaml => {
                print("---\n");
                self.print_objects(vec![object.clone()], Wrap::Single)
            }
            OutputFormat::Json | OutputFormat::Name => self.print_objects(vec![object.clone()], Wrap::Single),
        }
    }

    fn print_objects(&self, mut objects: Vec<Value>, wrap: Wrap) -> Outcome {
        if self.is_table() {
            return Ok(());
        }
        if !self.args.show_managed_fields {
            objects.iter_mut().for_each(hide_managed_fields);
        }
        print(&output::render(self.args.output, self.kind, &objects, wrap)?);
        Ok(())
    }

    /// A list's items, which carry neither `apiVersion` nor `kind` of their own.
    fn items_of(&self, page: &mut Value) -> Vec<Value> {
        let api_version = page["apiVersion"].clone();
        let mut items = match page["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        for item in &mut items {
            item["apiVersion"] = api_version.clone();
            item["kind"] = Value::String(self.kind.kind.clone());
        }
        items
    }

    fn say_nothing_found(&self) {
        if self.several {
            return;
        }
        match self.namespace.filter(|_| self.kind.namespaced) {
            Some(namespace) => eprintln!("No {} found in namespace {namespace}.", self.kind.resource()),
            None => eprintln!("No {} found.", self.kind.resource()),
        }
    }

    fn layout(&self) -> Layout {
        Layout {
            wide: self.args.output == OutputFormat::Wide,
            namespaces: self.args.all_namespaces && self.kind.namespaced,
        }
    }

    fn is_table(&self) -> bool {
        matches!(self.args.output, OutputFormat::Table | OutputFormat::Wide)
    }

    fn accept(&self) -> &'static str {
        if self.is_table() { AS_TABLE } else { "application/json" }
    }
}

fn print_table(printer: &mut Printer, table: &Value) {
    let lines: String = printer.lines(table).into_iter().flat_map(|line| [line, "\n".to_owned()]).collect();
    print(&lines);
}
