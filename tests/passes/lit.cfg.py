"""lit: one .onnxtxt per pass, with its RUN and CHECK lines in # comments."""

import os

import lit.formats

config.name = "passes"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".onnxtxt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(lit_config.params["build"], "tests", "passes")

tools = [lit_config.params["bin"], lit_config.params["llvm"]]
config.environment["PATH"] = os.pathsep.join(tools + [config.environment["PATH"]])
