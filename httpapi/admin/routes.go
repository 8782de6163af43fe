package admin

import (
	"encoding/json"
	"net/http"

	"github.com/julienschmidt/httprouter"

	"ogw/httpapi"
	"ogw/httpapi/apierr"
)

// New returns the API over c.
func New(c Config) *Server {
	s := &Server{Config: c, fs: namespaceOf(c.FS)}
	s.router = s.routes()
	s.handler = s.frame(s.router)
	return s
}

// call is one request; its result is sent as JSON.
type call func(r *http.Request, p httprouter.Params) (any, error)

// route is one operation of the API.
type route struct {
	method, path, op string
	call             call
}

// Operations returns the names of all operations.
func Operations() []string {
	var out []string
	for _, r := range (&Server{}).table() {
		out = append(out, r.op)
	}
	return append(out, authenticate, profiling, readBackup)
}

func (s *Server) table() []route {
	return []route{
		{"GET", "/v1/status", "Status", s.status},
		{"GET", "/v1/gateways", "Gateways", s.gateways},
		{"GET", "/v1/mounts", "Mounts", s.mounts},
		{"POST", "/v1/mounts", "Mount", s.mount},
		{"DELETE", "/v1/mounts", "Umount", s.umount},
		{"GET", "/v1/whereis", "Whereis", s.whereis},
		{"POST", "/v1/purge", "Purge", s.purge},
		{"POST", "/v1/check", "Check", s.check},
		{"GET", "/v1/users", "ListUsers", s.listUsers},
		{"POST", "/v1/users", "AddUser", s.addUser},
		{"DELETE", "/v1/users/:name", "RemoveUser", s.removeUser},
		{"POST", "/v1/users/:name/rename", "RenameUser", s.renameUser},
		{"POST", "/v1/users/:name/rotate", "RotateKeys", s.rotate},
		{"POST", "/v1/users/:name/keys", "AddKey", s.addKey},
		{"DELETE", "/v1/users/:name/keys/:key", "RemoveKey", s.removeKey},
		{"GET", "/v1/roles", "ListRoles", s.listRoles},
		{"POST", "/v1/roles", "AddRole", s.addRole},
		{"GET", "/v1/roles/:name", "Role", s.role},
		{"PUT", "/v1/roles/:name/trust", "SetTrust", s.setTrust},
		{"POST", "/v1/roles/:name/revoke", "RevokeRole", s.revokeRole},
		{"DELETE", "/v1/roles/:name", "RemoveRole", s.removeRole},
		{"GET", "/v1/groups", "ListGroups", s.listGroups},
		{"POST", "/v1/groups", "AddGroup", s.addGroup},
		{"DELETE", "/v1/groups/:name", "RemoveGroup", s.removeGroup},
		{"PUT", "/v1/groups/:name/users/:user", "AddMember", s.addMember},
		{"DELETE", "/v1/groups/:name/users/:user", "RemoveMember", s.removeMember},
		{"GET", "/v1/policies", "ListPolicies", s.listPolicies},
		{"GET", "/v1/policies/:name", "Policy", s.policy},
		{"PUT", "/v1/policies/:name", "PutPolicy", s.putPolicy},
		{"DELETE", "/v1/policies/:name", "RemovePolicy", s.removePolicy},
		{"PUT", "/v1/policies/:name/on/:kind/:to", "AttachPolicy", s.attachPolicy},
		{"DELETE", "/v1/policies/:name/on/:kind/:to", "DetachPolicy", s.detachPolicy},
		{"POST", "/v1/simulate", "Simulate", s.simulate},
		{"GET", "/v1/buckets", "ListBuckets", s.listBuckets},
		{"POST", "/v1/buckets", "AddBucket", s.addBucket},
		{"GET", "/v1/buckets/:name", "Bucket", s.bucket},
		{"PATCH", "/v1/buckets/:name", "SetBucket", s.setBucket},
		{"DELETE", "/v1/buckets/:name", "RemoveBucket", s.removeBucket},
		{"GET", "/v1/buckets/:name/usage", "Usage", s.usage},
		{"GET", "/v1/exports", "ListExports", s.listExports},
		{"POST", "/v1/exports", "AddExport", s.addExport},
		{"DELETE", "/v1/exports/:id", "RevokeExport", s.revokeExport},
		{"GET", "/v1/locks", "ListLocks", s.listLocks},
		{"POST", "/v1/locks/free", "FreeLocks", s.freeLocks},
		{"GET", "/v1/quarantine", "ListQuarantine", s.listQuarantine},
		{"POST", "/v1/quarantine/release", "ReleaseQuarantine", s.releaseQuarantine},
		{"POST", "/v1/backups", "AddBackup", s.addBackup},
		{"POST", "/v1/backups/:id/use", "UseBackup", s.useBackup},
		{"DELETE", "/v1/backups/:id", "RemoveBackup", s.removeBackup},
		{"POST", "/v1/stop", "Stop", s.stop},
		{"GET", "/healthz", "Health", s.healthz},
		{"GET", "/readyz", "Ready", s.readyz},
	}
}

// stream is a route whose answer is no JSON.
type stream struct {
	method, path string
	handle       httprouter.Handle
}

func (s *Server) streams() []stream {
	list := []stream{
		{"GET", "/v1/backups/:id/pairs", s.stream(readBackup, s.streamPairs)},
		{"POST", "/v1/backups/:id/blobs", s.stream(readBackup, s.streamBlobs)},
		{"GET", profilePath + "*name", profile},
		{"GET", metricsPath, nil},
	}
	if s.Metrics != nil {
		list[len(list)-1].handle = func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) { s.Metrics.ServeHTTP(w, r) }
	}
	return list
}

// metricsPath is where Config.Metrics is served.
const metricsPath = "/metrics"

// Route is one that this door serves; Path has the parameters of httprouter.
type Route struct{ Method, Path string }

// Routes returns the table of routes, for tests that must miss none.
func Routes() (list []Route) {
	s := &Server{}
	for _, r := range s.table() {
		list = append(list, Route{r.method, r.path})
	}
	for _, r := range s.streams() {
		list = append(list, Route{r.method, r.path})
	}
	return list
}

func (s *Server) routes() http.Handler {
	router := httprouter.New()
	router.RedirectTrailingSlash = false
	router.RedirectFixedPath = false
	for _, route := range s.table() {
		router.Handle(route.method, route.path, serve(route.op, route.call))
	}
	for _, route := range s.streams() {
		if route.handle != nil {
			router.Handle(route.method, route.path, route.handle)
		}
	}
	router.NotFound = refuse(apierr.ErrUnknownOperation)
	router.MethodNotAllowed = refuse(apierr.ErrMethod)
	return router
}

func refuse(err error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { apierr.WriteDetailed(w, r, err) })
}

// fail answers with err: to operators as it is, to strangers with its kind, whose
// details name gateways and paths.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	if !cameByStranger(r) {
		apierr.WriteDetailed(w, r, err)
		return
	}
	apierr.Write(w, r, apierr.Of(err).Err)
	httpapi.Note(r.Context(), "", "", err) // the log has it whole
}

func serve(op string, c call) httprouter.Handle {
	return func(w http.ResponseWriter, r *http.Request, p httprouter.Params) {
		who := operator
		if cameByStranger(r) {
			who = ""
		}
		httpapi.Note(r.Context(), op, who, nil)
		tellPath(r, p)
		r.Body = http.MaxBytesReader(w, r.Body, maxRequestBytes)
		out, err := c(r, p)
		if err != nil {
			fail(w, r, err)
			return
		}
		tell(r, out)
		w.Header().Set("Content-Type", "application/json")
		body, err := json.Marshal(out)
		if err != nil {
			apierr.WriteDetailed(w, r, err)
			return
		}
		_, _ = w.Write(append(body, '\n')) // the client may be gone
	}
}

func (s *Server) frame(h http.Handler) http.Handler {
	return httpapi.Frame(h, httpapi.FrameConfig{Door: "admin", Logger: s.Logger, Done: s.Done})
}
