# make run    builds ogw and serves S3, REST and NFS over ./ogw-data
# make test   installs what the tests need and runs all of them
# make help   lists the rest

GO      ?= go
BIN     := bin/ogw
TOOLS   := $(CURDIR)/.cache/tools
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)

# One place for each tool's version.
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
DEADCODE := golang.org/x/tools/cmd/deadcode@v0.52.0
BENCHSTAT := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

# The server that cluster/etcd is tested against, of the version in its go.mod.
ETCD := $(CURDIR)/.cache/etcd

# The S3 server of others that cluster/s3 is tested against.
VERSITYGW := $(CURDIR)/.cache/versitygw

SERVERS := OGW_ETCD=$(ETCD) OGW_VERSITYGW=$(VERSITYGW)

# Clients that Debian has not, or has old; their versions are in their go.mod.
RCLONE := $(CURDIR)/.cache/rclone
MC     := $(CURDIR)/.cache/mc

CLIENTS = OGW_RCLONE=$(RCLONE) OGW_MC=$(MC) OGW_NODE_MODULES=$(NODE_MODULES)

# The SDKs for JavaScript, clients of the tests.
NODE_MODULES := $(CURDIR)/.cache/node

# Longest time for one package's tests, above the 12 minutes of the slowest, which shares the machine.
TEST_TIMEOUT := 25m

# What has the client of Ceph is built by cgo, and needs librados-dev.
CEPH := CGO_ENABLED=1 $(GO)

# Ceph alone takes some minutes of it, since OSDs that died are given up after seconds.
CLUSTER_TIMEOUT := 60m

.PHONY: help run build build-ceph test test-unit test-crash test-race test-integration test-model test-cluster nemesis test-nfs-kernel test-survive test-upgrade test-programs test-large test-huge \
	lint lint-ceph bench bench-ab bench-ceph bench-cluster bench-nfs bench-compare fuzz soak deps deps-vm clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 20

run: build ## build and serve S3, REST and NFS on loopback over ./ogw-data
	$(BIN) serve

build: ## build bin/ogw
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/ogw

build-ceph: ## build bin/ogw with the client of Ceph: needs librados-dev, and librados2 where it runs
	$(CEPH) build -tags ceph -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/ogw

deps: ## install the clients that the tests drive
	integration/setup/apt.sh clients cluster model
	integration/setup/npm.sh $(NODE_MODULES)

deps-vm: ## install what a virtual machine with a Linux NFS client needs
	integration/setup/apt.sh vm

test: deps test-unit test-integration ## everything that belongs to every change

test-unit: ## the tests beside the code
	OGW_NODE_MODULES=$(NODE_MODULES) $(GO) test -timeout $(TEST_TIMEOUT) $$($(GO) list ./... | grep -v /integration)

test-crash: ## power cuts at CUT_POINTS (100000) calls of the whole stack: half an hour
	OGW_CUT_POINTS=$(or $(CUT_POINTS),100000) $(GO) test -v -timeout 4h -run TestStackPowerCuts ./cluster/local

test-race: ## the same under the race detector
	CGO_ENABLED=1 $(GO) test -race -short -timeout $(TEST_TIMEOUT) $$($(GO) list ./... | grep -v /integration)

# -count=1: the binary that they drive is not among the inputs that Go caches by.
# The attacks run alone, since they compare rates.
test-integration: build $(ETCD) $(VERSITYGW) ## real clients against the real binary
	$(SERVERS) $(GO) test -count=1 -timeout $(TEST_TIMEOUT) $$($(GO) list ./integration/... | grep -v /adversary)
	$(GO) test -count=1 -timeout $(TEST_TIMEOUT) ./integration/adversary

test-model: ## the rules of gateways beside one another, in all states of a model, and without each rule
	integration/setup/apt.sh model
	$(GO) test -v -count=1 -timeout $(TEST_TIMEOUT) ./integration/peers

# The tests build ogw by themselves, with the client of Ceph, and start three OSDs.
test-cluster: $(ETCD) $(VERSITYGW) lint-ceph ## the engines of several machines against their servers, Ceph among them; needs root
	integration/setup/apt.sh cluster ceph
	$(CEPH) test -tags ceph -count=1 ./cluster/rados/... ./cmd/ogw/server
	$(SERVERS) $(CEPH) test -tags ceph -v -count=1 -timeout $(CLUSTER_TIMEOUT) ./integration/engines

$(ETCD): integration/setup/etcd/go.mod
	cd integration/setup/etcd && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $@ go.etcd.io/etcd/server/v3

$(VERSITYGW): integration/setup/versitygw/go.mod
	cd integration/setup/versitygw && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $@ github.com/versity/versitygw/cmd/versitygw

$(MC): integration/setup/mc/go.mod
	cd integration/setup/mc && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $@ github.com/minio/mc

$(RCLONE): integration/setup/rclone/go.mod integration/setup/rclone/main.go
	cd integration/setup/rclone && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $@ .

nemesis: $(ETCD) $(VERSITYGW) ## three gateways beside one another under faults for NEMESIS (1h), over Ceph, then over etcd and PostgreSQL; needs root
	integration/setup/apt.sh cluster ceph
	OGW_NEMESIS=$(or $(NEMESIS),1h) $(SERVERS) $(CEPH) test -tags ceph -v -count=1 -timeout 0 -run TestNemesis ./integration/engines

test-nfs-kernel: build deps deps-vm $(ETCD) $(VERSITYGW) ## a Linux kernel NFS client in a virtual machine, and its server's address that moves
	integration/setup/apt.sh cluster
	OGW_TEST_VM=1 $(SERVERS) $(GO) test -v -timeout 120m -run KernelClient ./integration/nfsvm
	OGW_TEST_VM=1 $(SERVERS) $(GO) test -v -timeout 60m -run KernelClient ./integration/engines

test-survive: build ## programs on a mount through 20 kills and 20 restarts of its server
	integration/setup/apt.sh survive
	PATH="$$PATH:$$(echo /usr/lib/postgresql/*/bin | tr ' ' ':')" OGW_SURVIVE_ROUNDS=20 $(GO) test -v -count=1 -timeout 30m ./integration/survive

test-programs: build deps $(RCLONE) $(MC) ## what people put on top of S3, over HTTP and HTTPS, by path and by the bucket's name; needs root
	integration/setup/apt.sh programs
	$(CLIENTS) OGW_TEST_PROGRAMS=$(or $(WAYS),all) $(GO) test -v -count=1 -timeout 30m -run 'TestPrograms|TestGoSDKs' ./integration

test-large: build deps ## a million files, 20 GiB objects: minutes, and 40 GiB of disk
	OGW_TEST_LARGE=1 $(GO) test -v -timeout 60m -run Large ./integration

test-huge: build ## 10 million objects in one bucket beside 100,000: half an hour, 3 GB
	$(GO) run ./integration/tools/bench -run scale -scale $(or $(OBJECTS),10000000)

lint: $(TOOLS)/golangci-lint $(TOOLS)/deadcode ## a tidy go.mod, go vet, golangci-lint with the layers (depguard), the ratchet, dead code
	$(GO) mod tidy -diff
	$(GO) vet ./...
	integration/setup/apt.sh librados
	$(CEPH) vet -tags ceph ./cluster/... ./cmd/... ./integration/...
	$(TOOLS)/golangci-lint run ./...
	$(GO) run ./integration/tools/ratchet
	@dead=$$($(TOOLS)/deadcode -test ./...) || exit 1; \
	test -z "$$dead" || { echo "$$dead"; echo 'nothing calls these, tests included: delete them'; exit 1; }

lint-ceph: $(TOOLS)/golangci-lint $(TOOLS)/deadcode ## the same for what is built with the client of Ceph
	integration/setup/apt.sh ceph
	CGO_ENABLED=1 $(TOOLS)/golangci-lint run --build-tags ceph ./cluster/rados/... ./cmd/ogw/server ./integration/engines ./integration/testenv
	@dead=$$(CGO_ENABLED=1 $(TOOLS)/deadcode -tags ceph -test ./...) || exit 1; \
	test -z "$$dead" || { echo "$$dead"; echo 'nothing calls these, tests included: delete them'; exit 1; }

$(TOOLS)/golangci-lint:
	GOBIN=$(TOOLS) $(GO) install $(GOLANGCI)

$(TOOLS)/deadcode:
	GOBIN=$(TOOLS) $(GO) install $(DEADCODE)

bench: build ## every figure beside the limit measured in the same run; results in bench-DATE.json
	integration/setup/apt.sh bench
	$(GO) run ./integration/tools/bench -json bench-$$(date +%Y%m%d-%H%M%S).json

bench-compare: $(TOOLS)/benchstat ## compare two results: make bench-compare OLD=a.json NEW=b.json
	$(GO) run ./integration/tools/bench -compare $(OLD) $(NEW)
	$(TOOLS)/benchstat $(basename $(OLD)).txt $(basename $(NEW)).txt

bench-ceph: ## blobs in a pool of Ceph beside rados bench, and what the index costs; three OSDs on this machine
	integration/setup/apt.sh ceph
	$(CEPH) test -tags ceph -run '^$$' -bench RADOS -benchtime 1x ./integration/engines

BASE_TREE := $(CURDIR)/.cache/base

# BASE is built from a tree of its own, which is taken away again.
bench-ab: build ## is it slower? BASE=COMMIT and this tree in turns, S3 and NFS; RUN='s3|nfs|fuse|device', ROWS, STARTS=20, PAIRS=6, BOUND=0.03; needs root
	@test -n "$(BASE)" || { echo 'make bench-ab BASE=COMMIT'; exit 2; }
	integration/setup/apt.sh bench-ab
	git worktree remove --force $(BASE_TREE) 2>/dev/null || true
	git worktree add --force --detach $(BASE_TREE) $(BASE)
	cd $(BASE_TREE) && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(CURDIR)/.cache/ogw-base ./cmd/ogw
	git worktree remove --force $(BASE_TREE)
	$(GO) run ./integration/tools/bench -ab .cache/ogw-base -run '$(or $(RUN),s3|nfs)' -rows '$(ROWS)' \
		-starts $(or $(STARTS),20) -pairs $(or $(PAIRS),6) -bound $(or $(BOUND),0.03) -json bench-ab-$$(date +%Y%m%d-%H%M%S).json

test-upgrade: build $(ETCD) $(VERSITYGW) ## gateways of BASE=COMMIT are replaced by those of this tree, one by one, under load; needs root
	@test -n "$(BASE)" || { echo 'make test-upgrade BASE=COMMIT'; exit 2; }
	integration/setup/apt.sh cluster
	git worktree remove --force $(BASE_TREE) 2>/dev/null || true
	git worktree add --force --detach $(BASE_TREE) $(BASE)
	cd $(BASE_TREE) && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(CURDIR)/.cache/ogw-base ./cmd/ogw
	git worktree remove --force $(BASE_TREE)
	OGW_TEST_OLDER=$(CURDIR)/.cache/ogw-base $(SERVERS) $(GO) test -v -count=1 -timeout 20m -run TestUpgrade ./integration/engines

$(TOOLS)/benchstat:
	GOBIN=$(TOOLS) $(GO) install $(BENCHSTAT)

bench-cluster: build $(ETCD) $(VERSITYGW) ## gateways over etcd and PostgreSQL beside these alone; ROWS=REGEXP; needs root
	integration/setup/apt.sh cluster
	OGW_BENCH_CLUSTER=1 OGW_BENCH_ROWS='$(ROWS)' $(SERVERS) $(GO) test -v -count=1 -timeout 30m -run TestBench ./integration/engines

bench-nfs: build ## the NFS gateway beside nfs-ganesha on the same disk, through libnfs; needs root
	integration/setup/apt.sh bench-nfs
	integration/tools/bench/nfs.sh

fuzz: ## every fuzz target for FUZZTIME (30s)
	integration/setup/fuzz.sh $(or $(FUZZTIME),30s)

soak: build deps ## LOCK_MINUTES (600) of locks over a slow store, and BESIDE_TIME (10m) of reads and writes; HANDOVERS (100000) between two mounts and two doors; REPLACE_CALLS (1000000) of a path that is replaced; LOCK_TRIES (10000) of interrupted locks; KILL_ROUNDS (20) of a loaded server; all Go sources through all doors; random load through all doors for SOAK_TIME (1h), watching memory, files, space
	OGW_LOCK_MINUTES=$(or $(LOCK_MINUTES),600) $(GO) test -v -timeout 0 -run TestDelays ./vfs/internal/sharedlocks
	OGW_BESIDE_TIME=$(or $(BESIDE_TIME),10m) $(GO) test -v -timeout 0 -run TestBesideDelays ./vfs
	OGW_HANDOVERS=$(or $(HANDOVERS),100000) $(GO) test -v -timeout 0 -run TestHandOver ./integration
	OGW_REPLACE_CALLS=$(or $(REPLACE_CALLS),1000000) $(GO) test -v -timeout 0 -run 'TestFUSE$$' ./integration/posix
	OGW_LOCK_TRIES=$(or $(LOCK_TRIES),10000) $(GO) test -v -timeout 0 -run 'TestSignalsMeetLocks' ./integration/apps
	OGW_KILL_ROUNDS=$(or $(KILL_ROUNDS),20) OGW_GO_TREE=. $(GO) test -v -timeout 0 -run 'TestKill|TestGoTree' ./integration
	OGW_SOAK_TIME=$(or $(SOAK_TIME),1h) $(GO) test -v -timeout 0 -run TestSoak ./integration

clean: ## remove what was built
	rm -rf bin .cache
