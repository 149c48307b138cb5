//! Services → the variables by which containers find them (`pkg/kubelet/envvars/envvars.go`).

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use super::service::{ServiceName, ServicePort, ServiceSort, Transport};
use super::table::ServiceTable;

/// Which Services' variables a container has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceLinks {
    /// Those of all Services of its namespace, and of the API server.
    All,
    /// Those of the API server.
    ApiServer,
}

/// The name of the API server's Service.
const API_SERVER: &str = "kubernetes";

/// The variables of a pod's containers. Where no Service stands for the API server, it is told where the server itself listens.
pub fn service_variables(
    table: &ServiceTable,
    namespace: &str,
    links: ServiceLinks,
    api_server: Option<SocketAddrV4>,
) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let own = ServiceName { namespace: "default".to_owned(), name: API_SERVER.to_owned() };
    match (table.facts(&own).map(|facts| (&facts.sort, &facts.ports)), api_server) {
        (Some((ServiceSort::Addressed { address }, ports)), _) => add(&mut variables, API_SERVER, *address, ports),
        (_, Some(server)) => {
            let https = ServicePort {
                name: "https".to_owned(),
                transport: Transport::Tcp,
                port: server.port(),
                node_port: None,
            };
            add(&mut variables, API_SERVER, *server.ip(), &[https]);
        }
        (_, None) => {}
    }
    if links == ServiceLinks::All {
        for (name, facts) in table.in_namespace(namespace) {
            if let ServiceSort::Addressed { address } = facts.sort {
                add(&mut variables, name, address, &facts.ports);
            }
        }
    }
    variables
}

fn add(variables: &mut BTreeMap<String, String>, service: &str, address: Ipv4Addr, ports: &[ServicePort]) {
    let name = variable_name(service);
    let Some(first) = ports.first() else { return };
    variables.insert(format!("{name}_SERVICE_HOST"), address.to_string());
    variables.insert(format!("{name}_SERVICE_PORT"), first.port.to_string());
    for port in ports.iter().filter(|port| !port.name.is_empty()) {
        variables.insert(format!("{name}_SERVICE_PORT_{}", variable_name(&port.name)), port.port.to_string());
    }
    // As Docker's links had them.
    variables.insert(format!("{name}_PORT"), link(address, first));
    for port in ports {
        let transport = port.transport.label();
        let prefix = format!("{name}_PORT_{}_{}", port.port, transport.to_ascii_uppercase());
        variables.insert(prefix.clone(), link(address, port));
        variables.insert(format!("{prefix}_PROTO"), transport.to_owned());
        variables.insert(format!("{prefix}_PORT"), port.port.to_string());
        variables.insert(format!("{prefix}_ADDR"), address.to_string());
    }
}

fn link(address: Ipv4Addr, port: &ServicePort) -> String {
    format!("{}://{address}:{}", port.transport.label(), port.port)
}

fn variable_name(name: &str) -> String {
    name.to_ascii_uppercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::testing::put_service;
    use serde_json::json;

    fn table() -> ServiceTable {
        let mut table = ServiceTable::of_node("here");
        let ports = json!([{"name": "http-main", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]);
        put_service(&mut table, "web-shop", &json!({"clusterIP": "127.78.1.2", "ports": ports}));
        put_service(&mut table, "db", &json!({"clusterIP": "None", "ports": [{"port": 5432}]}));
        table
    }

    fn lines(links: ServiceLinks, namespace: &str) -> Vec<String> {
        let api_server = Some(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 6440));
        let variables = service_variables(&table(), namespace, links, api_server);
        variables.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    #[test]
    fn each_service_with_an_address_has_its_host_its_ports_and_its_links() {
        let of_shop: Vec<String> =
            lines(ServiceLinks::All, "shop").into_iter().filter(|line| !line.starts_with("KUBERNETES")).collect();

        let expected = [
            "WEB_SHOP_PORT=tcp://127.78.1.2:80",
            "WEB_SHOP_PORT_53_UDP=udp://127.78.1.2:53",
            "WEB_SHOP_PORT_53_UDP_ADDR=127.78.1.2",
            "WEB_SHOP_PORT_53_UDP_PORT=53",
            "WEB_SHOP_PORT_53_UDP_PROTO=udp",
            "WEB_SHOP_PORT_80_TCP=tcp://127.78.1.2:80",
            "WEB_SHOP_PORT_80_TCP_ADDR=127.78.1.2",
            "WEB_SHOP_PORT_80_TCP_PORT=80",
            "WEB_SHOP_PORT_80_TCP_PROTO=tcp",
            "WEB_SHOP_SERVICE_HOST=127.78.1.2",
            "WEB_SHOP_SERVICE_PORT=80",
            "WEB_SHOP_SERVICE_PORT_DNS=53",
            "WEB_SHOP_SERVICE_PORT_HTTP_MAIN=80",
        ];
        assert_eq!(of_shop, expected);
    }

    #[test]
    fn the_api_server_is_told_to_all_and_other_services_only_to_their_namespace_and_where_they_are_wanted() {
        let elsewhere = lines(ServiceLinks::All, "harbour");

        assert!(elsewhere.contains(&"KUBERNETES_SERVICE_HOST=127.0.0.1".to_owned()), "{elsewhere:?}");
        assert!(elsewhere.contains(&"KUBERNETES_SERVICE_PORT_HTTPS=6440".to_owned()), "{elsewhere:?}");
        assert_eq!(lines(ServiceLinks::ApiServer, "shop"), elsewhere);
        assert!(elsewhere.iter().all(|line| line.starts_with("KUBERNETES_")), "{elsewhere:?}");
    }

    #[test]
    fn a_service_of_the_servers_name_stands_for_it() {
        let mut table = ServiceTable::of_node("here");
        let spec = json!({"clusterIP": "127.78.0.1", "ports": [{"port": 443}]});
        let service = json!({"metadata": {"name": "kubernetes", "namespace": "default"}, "spec": spec});
        let facts = crate::network::service::ServiceFacts::of(&serde_json::from_value(service).unwrap());
        table.put_service(&crate::network::testing::service_name("default", "kubernetes"), facts);

        let server = Some(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 6440));
        let variables = service_variables(&table, "shop", ServiceLinks::ApiServer, server);

        assert_eq!(variables["KUBERNETES_SERVICE_HOST"], "127.78.0.1");
    }
}
