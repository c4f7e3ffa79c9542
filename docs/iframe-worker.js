// The search runs in a web worker, which browsers do not start for pages from disk. There, this class runs the script of
// a worker in a hidden frame. The theme uses only what is defined here: messages in both directions.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.scope = frame.contentWindow;
      this.scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = frame.contentDocument.createElement("script");
      script.src = url;
      this.loaded = new Promise((resolve) => script.addEventListener("load", resolve));
      frame.contentDocument.body.append(script);
    }

    postMessage(data) {
      this.loaded.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
