// Runs a hidden test: node typescript.cjs COMPILER ROOT TEST. Modules of TypeScript are compiled when they are loaded.
const fs = require("node:fs");
const [, , compiler, root, test] = process.argv;
const ts = require(compiler);
for (const ending of [".ts", ".tsx"]) {
  require.extensions[ending] = (module, path) => {
    const options = { module: "commonjs", target: "ES2022", esModuleInterop: true, jsx: "react" };
    const made = ts.transpileModule(fs.readFileSync(path, "utf8"), { compilerOptions: options, reportDiagnostics: true });
    if (made.diagnostics.length) throw new Error(`${path} cannot be read`);
    module._compile(made.outputText, path);
  };
}
globalThis.root = root;
require(test);
