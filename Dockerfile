# The operator's image: built from source, run as nobody in particular on a base without a shell.
# BASE must have the C library of BUILDER's Debian (or a newer one) and certificate authorities.
ARG BUILDER=rust:1.92-bookworm
ARG BASE=gcr.io/distroless/cc-debian12:nonroot

FROM ${BUILDER} AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY .cargo .cargo
COPY crates crates
COPY charts charts
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --profile dist --locked -p portolan && cp target/dist/portolan /portolan

FROM ${BASE}
COPY --from=build /portolan /usr/local/bin/portolan
# As the chart's pods; a number, so that Kubernetes can see that it is not root.
USER 1000:1000
EXPOSE 8080 8081
ENTRYPOINT ["portolan"]
CMD ["run"]
