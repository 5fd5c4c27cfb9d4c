// The API server of Kubernetes with its etcd in one process, for tests on loopback.
//
//	apiserver FOLDER CLIENT_PORT PEER_PORT [options of kube-apiserver]
package main

import (
	"fmt"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	store := embed.NewConfig()
	store.Dir = os.Args[1]
	store.LogLevel = "error"
	store.UnsafeNoFsync = true
	clients, peers := address(os.Args[2]), address(os.Args[3])
	store.ListenClientUrls, store.AdvertiseClientUrls = clients, clients
	store.ListenPeerUrls, store.AdvertisePeerUrls = peers, peers
	store.InitialCluster = store.InitialClusterFromName(store.Name)
	running, err := embed.StartEtcd(store)
	if err != nil {
		fail(err)
	}
	select {
	case <-running.Server.ReadyNotify():
	case <-time.After(time.Minute):
		fail(fmt.Errorf("etcd is not ready after a minute"))
	}
	server := app.NewAPIServerCommand()
	server.SetArgs(append([]string{"--etcd-servers=" + clients[0].String()}, os.Args[4:]...))
	os.Exit(cli.Run(server))
}

func address(port string) []url.URL {
	return []url.URL{{Scheme: "http", Host: "127.0.0.1:" + port}}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
