// The service that `cargo xtask bench-compare` runs on Restate: three durable steps, each of which adds one to
// the number before it, and an output of what all three said. Serves HTTP/2 without TLS at 127.0.0.1:PORT.

import { createServer } from "node:http2";
import process from "node:process";
import { createEndpointHandler, service } from "@restatedev/restate-sdk";

// The library asks for it, and Node.js has it from 22 on only.
Promise.withResolvers ??= function () {
  let resolve, reject;
  const promise = new this((...both) => ([resolve, reject] = both));
  return { promise, resolve, reject };
};

const steps = service({
  name: "steps",
  handlers: {
    run: async (ctx, { number }) => {
      const first = await ctx.run("first", () => number + 1);
      const second = await ctx.run("second", () => first + 1);
      const third = await ctx.run("third", () => second + 1);
      return { first, second, third };
    },
  },
});

const port = Number(process.argv[2]);
if (!Number.isInteger(port) || port < 1 || port > 65535) {
  console.error(`expected a port, but got ${process.argv[2]}`);
  process.exit(2);
}
process.once("SIGTERM", () => process.exit(0));
createServer(createEndpointHandler({ services: [steps] })).listen(port, "127.0.0.1", () => {
  console.log("ready");
});
