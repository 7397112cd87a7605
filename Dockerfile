# Drawbridge in a container. The image holds the program, git (checkpoints, and agents need it) and bubblewrap (the
# sandbox of agents' commands), and no configuration.
#
#   docker build -t drawbridge .
#   docker run --env-file drawbridge.env -v drawbridge:/data -v /srv/projects:/projects drawbridge
#
# Mounted:
#   /data       the store and the sessions' state (data_dir); must outlive the container, or grants and chats are forgotten
#   /projects   the projects that agents work in; name them in DRAWBRIDGE_PROJECTS=api=/projects/api,web=/projects/web
#
# Both must be writable by user 10001. An agent runs what its project needs: build from this image and add the
# compilers. bubblewrap needs user namespaces, which some container hosts forbid; `drawbridge` says so where it is so,
# and commands then count as unsandboxed.
FROM golang:1.26-trixie AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /drawbridge ./cmd/drawbridge

FROM debian:trixie-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends bubblewrap ca-certificates git \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --create-home --shell /usr/sbin/nologin drawbridge \
 && install -d -o drawbridge -g drawbridge -m 0700 /data \
 && install -d -o drawbridge -g drawbridge /projects
COPY --from=build /drawbridge /usr/local/bin/drawbridge
USER drawbridge
ENV DRAWBRIDGE_DATA_DIR=/data
VOLUME ["/data"]
WORKDIR /projects
# The process ends in two phases on SIGTERM; give it the time (docker stop --time 60).
STOPSIGNAL SIGTERM
ENTRYPOINT ["drawbridge"]
CMD ["serve"]
