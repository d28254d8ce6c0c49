"""The program that makes a view and runs commands in it; imports the standard library and nothing else of ours."""
